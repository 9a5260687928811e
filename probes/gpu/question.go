package gpu

import "github.com/whyhang/whyhang/probes/evidence"

// ChildName is the name of the child in probes.ChildMain.
const ChildName = "nvml"

// question is what the parent asks the child: to open the library, or about
// one GPU. One GPU at a time, so that one that hangs costs only itself.
type question struct {
	Open bool `json:"open,omitempty"`
	GPU  int  `json:"gpu"`
	// Static: also what does not move.
	Static bool `json:"static,omitempty"`
}

// opened is the child's answer to Open. Status is not OK when there is nothing
// to ask further; Detail and Hint then go into the report.
type opened struct {
	Status evidence.Status `json:"status"`
	// LibraryMissing: the dynamic linker found no library of that name.
	LibraryMissing bool   `json:"library_missing,omitempty"`
	Detail         string `json:"detail,omitempty"`
	Hint           string `json:"hint,omitempty"`
	Driver         string `json:"driver,omitempty"`
	Count          int    `json:"count"`
}

// seen is the child's answer about one GPU.
type seen struct {
	Device evidence.GPUDevice `json:"device"`
	Frame  evidence.GPUFrame  `json:"frame"`
}
