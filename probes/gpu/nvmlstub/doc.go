// Package nvmlstub builds the stub libnvidia-ml.so.1 of testdata/nvml for
// tests: a library that plays eight GPUs, hangs, crashes or lacks symbols.
//
// It is for tests only and may not be imported by anything else.
package nvmlstub
