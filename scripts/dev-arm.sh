# ./dev arm: the tables of docs/arm.md, from the object code and under qemu.
need cmake ninja-build pkg-config python3 g++-aarch64-linux-gnu g++-arm-linux-gnueabihf clang-19 llvm-19 llvm-22
need_qemu
need_sysroot arm64
need_sysroot armhf
build evidence-arm64 skua-arm-layer
build evidence-arm64-clang $(python3 bench/arm/table.py --units)
build evidence-armhf skua-arm-layer
say "rating loops and counting instructions"
python3 bench/arm/table.py --arm64 build/evidence-arm64 --arm64-clang build/evidence-arm64-clang --armhf build/evidence-armhf
say "the tables of docs/arm.md are new"
