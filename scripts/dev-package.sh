# ./dev package ARCH: one static skua-bench that needs nothing of the device, shown under qemu.
arch=${1-}
case $arch in
  arm64) compiler=g++-aarch64-linux-gnu emulator=qemu-aarch64 ;;
  armhf) compiler=g++-arm-linux-gnueabihf emulator=qemu-arm ;;
  *) usage >&2; exit 2 ;;
esac
need cmake ninja-build "$compiler"
need_qemu
build "package-$arch" skua-bench

out=build/package/$arch
mkdir -p "$out"
cp "$(find "build/package-$arch" -name skua-bench -type f -perm -u+x | head -n 1)" "$out/skua-bench"
if readelf -lW "$out/skua-bench" | grep -q INTERP; then echo "dev: $out/skua-bench is not static" >&2; exit 1; fi

emulator=$(PATH="$PWD/build/tools/qemu/usr/bin:$PATH" command -v "$emulator")
say "skua-bench under $(basename "$emulator") (figures of an emulator: they show that it runs, not how fast)"
"$emulator" -cpu max "$out/skua-bench" --suite kernels --filter 'gemm_f32' --quick --json "$out/emulated.json"
say "$out/skua-bench is ready: $(stat -c %s "$out/skua-bench") bytes"
cat <<TEXT
   adb push $out/skua-bench /data/local/tmp/
   adb shell /data/local/tmp/skua-bench --quick --json /data/local/tmp/skua.json
   adb pull /data/local/tmp/skua.json
TEXT
