trap 'echo caught' USR1
trap 'echo leaving $?' EXIT
kill -USR1 $$
sleep 0.2 & first=$!
(exit 7) & second=$!
wait $second; echo "second $?"
wait $first; echo "first $?"
sleep 30 & sleep 0.2; kill $!; wait $!; echo "killed $?"
set -m; sleep 30 & sleep 0.2; jobs | sed 's/ \+/ /g'; kill %1; wait %1 2>/dev/null; echo "job $?"
timeout 0.2 sleep 10; echo "timeout $?"
(trap '' TERM; kill $BASHPID; echo "ignored")
coproc { read -r line; echo "got $line"; }; echo hello >&"${COPROC[1]}"; read -r answer <&"${COPROC[0]}"; echo "$answer"
exit 3
