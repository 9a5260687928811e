package diagnose

import (
	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/caches"
	"github.com/whyhang/whyhang/probes/gpu"
	"github.com/whyhang/whyhang/probes/kernel"
	"github.com/whyhang/whyhang/probes/process"
	"github.com/whyhang/whyhang/probes/serverlog"
)

// Children are the probes that run in child processes of ourselves, by the
// names they are started under. main and every TestMain whose tests start one
// hand them to probes.ChildMain.
func Children() map[string]func() probes.Handler {
	return map[string]func() probes.Handler{
		gpu.ChildName:      gpu.Child,
		process.ChildFiles: process.FilesChild,
		"log":              serverlog.Child,
		caches.ChildName:   caches.Child,
		kernel.ChildName:   kernel.Child,
	}
}
