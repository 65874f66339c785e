#!/usr/bin/env bash
# neon_test.sh SOURCE: builds the backends for AArch64 and runs their tests in an emulator.
set -euo pipefail
for program in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$program" >/dev/null || { echo "$program is not installed"; exit 77; }
done
cd "$1"
./dev preset neon
echo "A processor without dot products:"
qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu cortex-a72 build-neon/bin/test_cpu --gtest_filter='Isa.*'
