use strict; use warnings; use List::Util qw(sum max); use POSIX qw(floor); use Digest::MD5 qw(md5_hex); use IO::Socket::INET;
my %count; $count{$_}++ for split //, "mississippi";
print join(",", map { "$_$count{$_}" } sort keys %count), "\n";
print sum(1 .. 100), " ", max(3, 9, 4), " ", floor(-2.5), " ", md5_hex("x"), "\n";
(my $text = "2024-01-31") =~ s/(\d+)-(\d+)-(\d+)/$3.$2.$1/; print "$text\n";
my $pid = open(my $pipe, "-|") // die; if (!$pid) { print "from the child\n"; exit 4 } print <$pipe>; close $pipe; print $? >> 8, "\n";
my $server = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die $@;
if (!fork) { my $c = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $server->sockport); print $c "hello\n"; exit }
print $server->accept->getline; wait;
local $SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; select undef, undef, undef, 5; }; print $@;
exit 6;
