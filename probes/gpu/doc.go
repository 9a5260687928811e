// Package gpu reads the GPUs through NVIDIA's management library (NVML), in a
// child process of ourselves that may hang or crash.
//
// Why a child: a call into the library can end the process (a function that an
// older driver lacks, a call before nvmlInit, a fault in the library) and can
// sleep in the kernel for ever, unkillable, behind a driver lock that somebody
// else holds. That the driver does not answer is then a fact like any other.
//
// The package may not judge what it reads, may not change a setting of a GPU,
// and calls the library nowhere but in the child. go-nvml is imported only by
// the files nvml_*.go, which need cgo; a build without cgo says that it cannot
// read GPUs.
package gpu
