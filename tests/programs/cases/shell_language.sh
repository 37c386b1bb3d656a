set -eu
cat <<TEXT
here $((6*7)) ${HOME:+has a home}
TEXT
cat <<'TEXT'
literal $HOME
TEXT
declare -A map=([b]=2 [a]=1); array=(x "y z" w)
for key in $(printf '%s\n' "${!map[@]}" | sort); do echo "$key=${map[$key]}"; done
echo "${#array[@]} ${array[1]} ${array[*]:1} ${array[-1]}"
diff <(printf 'a\nb\n') <(printf 'a\nc\n') || echo "differ $?"
text=/usr/lib/file.tar.gz; echo "${text##*/} ${text%%.*} ${text/lib/share} ${text^^}"
f() { local n=$1; ((n <= 1)) && echo 1 || echo $((n * $(f $((n - 1))))); }; f 10
case abc in a*) echo matched;; esac
[[ foo123 =~ ([a-z]+)([0-9]+) ]] && echo "${BASH_REMATCH[2]}"
printf -v padded '%05d' 42; echo "$padded"; mapfile -t lines < <(seq 3); echo "${lines[@]}"
