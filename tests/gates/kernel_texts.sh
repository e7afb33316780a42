#!/usr/bin/env bash
# Every GPU kernel through a front end that runs none of them: kernel_texts.sh opencl CLANG DIR | spirv SPIRV_VAL DIR, DIR = generated/gpu of the build folder.
set -u
kind=$1 tool=$2 dir=$3
constants=$(for i in 0 1 2 3 4 5; do echo "-DC$i=1"; done; echo "-DC6=0x101 -DC7=0x101")  # the last two may hold two numbers
bad=0 count=0
while read -r name spirv text options; do
  count=$((count + 1))
  case $kind in
    opencl)
      languages="CL1.2 CL3.0"
      case $options in *-DSUBGROUPS=1*) languages="CL2.0 CL3.0" ;; esac
      for std in $languages; do
        "$tool" -x cl -cl-std=$std -target spir64 -fsyntax-only -Xclang -cl-ext=+cl_khr_fp16,+cl_khr_subgroups -Xclang -finclude-default-header -Wall -Wextra -Wno-unused -Wno-unused-parameter -Werror $options $constants -DL0=64 -DL1=1 -DL2=1 \
          "$dir/$text.cl" || { echo "$name: not OpenCL C ($std)"; bad=$((bad + 1)); }
      done ;;
    spirv) "$tool" --target-env vulkan1.1 "$dir/$spirv.spv" || { echo "$name: not valid SPIR-V for Vulkan 1.1"; bad=$((bad + 1)); } ;;
  esac
done < "$dir/kernel_texts.list"
echo "$count kernels, $bad bad"
[ $bad -eq 0 ] && [ $count -gt 0 ]
