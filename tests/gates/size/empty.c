/* The same calls of the C library as one_operator.c, and nothing of Skua: what the comparison leaves out. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  void* memory = malloc(64);
  char* volatile text = "x";
  printf("%s %g\n", text, (double)*(volatile char*)text);
  free(memory);
  return memory == NULL;
}
