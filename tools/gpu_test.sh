#!/usr/bin/env bash
# Tests of the GPU backends on a machine that has a GPU, in less than nine minutes: conformance, what compute-sanitizer
# sees, the server, speed. `./dev gpu-test [REGEX]` builds first and then runs this.
#
#   HEARTH_BIN=DIR tools/gpu_test.sh [REGEX]     programs that were built elsewhere; libraries they need in DIR/lib
#   HEARTH_BUILT_AT=DIR                          the checkout that they were built in, whose test data they look for
#   HEARTH_BENCH_MODEL=FILE                      a model to measure beside the one in the box
#
# REGEX (as grep -E) limits the tests; then nothing is measured. The exit status is 0 when all went well.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=${HEARTH_BIN:-build/bin}
pattern=${1:-}
limit=${HEARTH_GPU_TEST_SECONDS:-520}  # in all
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
if [[ -d $bin/lib ]]; then export LD_LIBRARY_PATH=$bin/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; fi
chmod +x "$bin"/* 2>/dev/null

summary=()
failures=0

# step NAME SECONDS COMMAND...: runs it with a time limit; its output is shown when it fails.
step() {
  local name=$1 most=$2 start=$SECONDS status=0
  shift 2
  local left=$((limit - SECONDS))
  ((most < left)) || most=$left
  if ((most < 1)); then
    summary+=("FAILED  $name: no time is left")
    ((++failures))
    return
  fi
  echo "== $name"
  timeout --kill-after=5 "$most" "$@" >"$logs/out" 2>&1 || status=$?
  if ((status == 0)); then
    summary+=("ok      $name, $((SECONDS - start)) s$(grep -o 'ERROR SUMMARY: .*\|RACECHECK SUMMARY: .*' "$logs/out" | tail -1 | sed 's/^/: /')")
    return
  fi
  tail -n 60 "$logs/out"
  local why="exit status $status"
  ((status != 124 && status != 137)) || why="its limit of $most s passed"
  summary+=("FAILED  $name, $((SECONDS - start)) s: $why")
  ((++failures))
}
skip() { summary+=("skipped $1: $2"); }

# tests PROGRAM [PATTERN]: names of its tests on the GPU, joined for --gtest_filter; empty: none.
tests() {
  "$bin/$1" --gtest_list_tests 2>/dev/null | awk '
    /^[^ ]/ {suite = $1}
    /^  / {print suite $1}' | grep cuda | grep -v '_slow$' |
    grep -E "${pattern:-.}" | grep -E "${2:-.}" | paste -sd:
}

# sharded PROGRAM FILTER: on several cores, because the references that the GPU is compared with are computed there.
# Tests that find no such device skip themselves; here that is a failure.
sharded() {
  local program=$1 filter=$2 count i status=0 pids=()
  count=$(nproc)
  ((count <= 8)) || count=8
  for ((i = 0; i < count; ++i)); do
    GTEST_TOTAL_SHARDS=$count GTEST_SHARD_INDEX=$i "$bin/$program" --gtest_brief=1 --gtest_filter="$filter" \
      >"$logs/shard$i" 2>&1 &
    pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i" || status=1; done
  cat "$logs"/shard*
  ! grep -q 'machine cannot run cuda' "$logs"/shard* || status=1
  rm "$logs"/shard*
  return $status
}
export bin logs
export -f sharded

# Programs know where the test data was on the machine that built them.
if [[ -n ${HEARTH_BUILT_AT:-} && ! -e $HEARTH_BUILT_AT/tests/data ]]; then
  mkdir -p "$HEARTH_BUILT_AT/tests" && ln -s "$PWD/tests/data" "$HEARTH_BUILT_AT/tests/data"
fi

# ---- over a driver that fails: needs no GPU ----
if [[ -x $bin/test_cuda ]]; then
  step "errors of the driver" 90 "$bin/test_cuda" --gtest_brief=1
else
  skip "errors of the driver" "there is no test_cuda"
fi

# ---- is there a GPU? ----
gpu=$("$bin/hearth" doctor --quick 2>&1 | grep -E '^cuda:[0-9]+ ' | head -n 1)
if [[ -z $gpu ]]; then
  "$bin/hearth" doctor --quick 2>&1 | sed -n '/^GPU/p'
  summary+=("FAILED  no GPU can be used here")
  printf '\n%s\n' "${summary[@]}"
  exit 1
fi
echo "$gpu"

# ---- conformance ----
for program in test_backends test_golden test_engine; do
  filter=$([[ -x $bin/$program ]] && tests "$program")
  if [[ -n $filter ]]; then
    step "$program on the GPU" 240 bash -c 'sharded "$@"' - "$program" "$filter"
  elif [[ $program == test_backends && -z $pattern ]]; then
    summary+=("FAILED  $program has no test of the GPU")
    ((++failures))
  else
    skip "$program" "no test of the GPU$([[ -n $pattern ]] && echo " matches $pattern")"
  fi
done

# ---- compute-sanitizer: each op once, and every format's products in one shape ----
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
subset=$(tests test_backends 'Conformance\.[A-Za-z]+/cuda$' | tr : '\n' | grep -vE 'Every(Case|Format)' | paste -sd:)
shared=$(tests test_backends 'OneOfEachKind|RmsNorm')
if [[ -z $sanitizer ]]; then
  skip "memcheck and racecheck" "compute-sanitizer is not here"
elif [[ -z $subset ]]; then
  skip "memcheck and racecheck" "no test of them matches $pattern"
else
  # Kernels one by one, so that an error has a name.
  export HEARTH_CUDA_WITHOUT=graphs
  step memcheck 150 "$sanitizer" --tool memcheck --error-exitcode 9 "$bin/test_backends" --gtest_brief=1 \
    --gtest_filter="$subset"
  step racecheck 150 "$sanitizer" --tool racecheck --error-exitcode 9 "$bin/test_backends" --gtest_brief=1 \
    --gtest_filter="$shared"
  unset HEARTH_CUDA_WITHOUT
fi

# ---- the server ----
if [[ -n $pattern ]]; then
  skip "the server" "only what matches $pattern was asked for"
else
  hearth=$(realpath "$bin/hearth")
  export HEARTH_TEST_DEVICE=cuda
  step "serve on the GPU" 120 python3 tests/server/serve_test.py "$hearth"
  step "10,000 requests that come and go" 90 python3 tests/server/soak_test.py "$hearth" 10000
  step "faulty requests" 60 python3 tests/server/fuzz_test.py "$hearth" 3000 7
  step "two answers beside a prompt of 32,000 tokens" 90 python3 tests/server/gap_test.py "$hearth" qwen3-0.6b 32000 2 0.5
  summary[-1]+=": $(tail -n 1 "$logs/out")"
  unset HEARTH_TEST_DEVICE
fi

# ---- speed ----
if [[ -n $pattern ]]; then
  skip "speed" "only what matches $pattern was asked for"
else
  measured() { # measured NAME COMMAND...: its output is what was wanted
    local name=$1
    shift
    step "$name" 60 "$@"
    cat "$logs/out"
  }
  measured "bandwidths" "$bin/hearth" doctor
  if [[ -x $bin/bench_cuda_linear ]]; then
    measured "products" "$bin/bench_cuda_linear" Q4_K 1 8 64 512
  fi
  for model in models/pocket-dense.gguf ${HEARTH_BENCH_MODEL:-}; do
    measured "bench $(basename "$model")" "$bin/hearth" bench "$model" --device cuda --rounds 2
  done
fi

printf '\n%s\n' "$gpu"
printf '%s\n' "${summary[@]}"
echo "$SECONDS s, $failures failed"
((failures == 0))
