set -u
seq 1000 | grep 7 | sort -rn | head -3 | paste -sd, | tr , ' '
printf '%s\n' one two three | while read -r word; do echo "${word^}"; done
yes | head -1000 | wc -l | tr -d ' '
false | true; echo "${PIPESTATUS[@]}"
{ echo out; echo err >&2; } 2>&1 | sort
echo data | tee a b > c; cat a b c
exec 5<>fifo_like; echo through >&5; exec 5>&-; cat fifo_like
mkfifo pipe; (echo "through a fifo" > pipe &); cat pipe
echo "$(< a)" "$(wc -c < c | tr -d ' ')"
