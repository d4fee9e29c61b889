// A local copy of glibc's variable, for libyaml-cpp.a: its code is not position-independent and cannot access a variable of
// another library. 0: reference counts are always atomic.
char __libc_single_threaded = 0;
