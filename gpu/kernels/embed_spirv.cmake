# Run with -P: compiles IN (.comp) with the options in DEFINES to OUT.spv and writes its words as C++ numbers to OUT.inc.
separate_arguments(defines UNIX_COMMAND "${DEFINES}")
execute_process(COMMAND ${GLSLC} -fshader-stage=compute --target-env=vulkan1.1 -O ${defines} ${IN} -o ${OUT}.spv RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "glslc: ${IN} does not compile with ${DEFINES}")
endif()
file(READ ${OUT}.spv words HEX)
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${words}")
file(WRITE ${OUT}.inc "${words}\n")
