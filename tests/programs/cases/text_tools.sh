printf 'b 2\na 10\nc 1\n' > data
sort data; sort -k2n data | cut -d' ' -f1 | paste -sd+
awk '{ sum += $2; names = names $1 } END { printf "%s %d %.2f\n", names, sum, sum / NR }' data
sed -n 's/^\([a-z]\) \([0-9]*\)$/\2:\1/p' data
sed -i '2d' data; cat data; wc -l < data | tr -d ' '
printf 'x\ny\n' | join - <(printf 'x 1\ny 2\n'); comm -12 <(printf 'a\nb\n') <(printf 'b\nc\n')
echo 'one two  three' | tr -s ' ' '\n' | nl | sed 's/^ *//' | uniq -c | wc -l | tr -d ' '
find . -type f -name 'd*' -printf '%f %s\n'; stat -c '%a %F' data; basename /a/b.c .c; dirname /a/b.c
dd if=/dev/zero bs=1024 count=10 2>/dev/null | sha256sum; cksum < data; base64 <<< hello; od -An -tx1 <<< hi
tar cf - data | tar tf -; gzip -c data | gunzip; xargs -n1 echo got < <(echo 1 2)
date -u -d @0 +%F; seq -s, 5; expr 6 \* 7; numfmt --to=iec 1048576; factor 360; truncate -s 1M big; ls -l big | cut -d' ' -f5
mkdir -p p/q; touch p/q/r; cp -r p s; mv s t; ln -s t u; rm -r p; find t u | sort; test -e p || echo gone
