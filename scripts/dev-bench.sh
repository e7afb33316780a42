# ./dev bench: a release build, the peers Debian has, and the report.
need cmake ninja-build g++ pkg-config libcpuinfo-dev libpthreadpool-dev libxnnpack-dev libdnnl-dev libopenblas-dev libblis-dev
build bench skua-bench
mkdir -p build/report
(( $# )) || set -- --quick
say "measuring"
"$(find build/bench -name skua-bench -type f -perm -u+x | head -n 1)" "$@" --json build/report/skua.json --html build/report/skua.html
say "the report is in build/report/skua.html, its figures in build/report/skua.json"
