// A library file that needs the C++ runtime.
int* canary_make() { return new int[4]; }
