#!/usr/bin/env bash
# install_test.sh BUILD SOURCE: installs, builds examples/ against it, runs both.
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$source/examples" -B "$work/examples" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/examples" >/dev/null
text=$("$work/examples/complete" "$source/models/pocket-dense.gguf" "Once upon a time")
echo "example: $text"
[[ -n $text ]]
answer=$("$work/prefix/bin/hearth" run -p "Tell me a story about a dog." -n 40 --temperature 0)
echo "command: $answer"
[[ $answer == *dog* ]]
if command -v systemd-analyze >/dev/null; then
  sed "s#^ExecStart=[^ ]*#ExecStart=$work/prefix/bin/hearth#" "$work/prefix/lib/systemd/system/hearth.service" >"$work/hearth.service"
  complaints=$(systemd-analyze verify "$work/hearth.service" 2>&1)
  echo "unit: ${complaints:-no complaints}"
  [[ -z $complaints ]]
fi
