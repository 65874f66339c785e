# Toolchain: compiles for AArch64 Linux with Debian's g++-aarch64-linux-gnu and runs programs in qemu-user. The emulated
# processor is the least that ISA `neon` needs: an instruction beyond it ends the test.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)  # GoogleTest declares C
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu cortex-a76)
