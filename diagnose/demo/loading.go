package demo

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	weightBytes = 2 << 30
	bytesPerS   = 50 << 20
)

// touched keeps the reads below from being optimised away.
var touched atomic.Uint64

// loading maps a weight file and touches it page by page, as an engine does
// that loads by mmap: no read call, no log line, just memory that grows. The
// file is sparse: it takes no room on the disk.
func loading(ready func()) error {
	path := filepath.Join(os.Getenv(dirVariable), "model.safetensors")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := writeHeader(f); err != nil {
		return err
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, weightBytes, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	ready()
	const step = 5 << 20
	start := time.Now()
	for done := 0; done < weightBytes; done += step {
		var sum uint64
		for i := done; i < min(done+step, weightBytes); i += os.Getpagesize() {
			sum += uint64(data[i])
		}
		touched.Add(sum)
		time.Sleep(time.Until(start.Add(time.Duration(done+step) * time.Second / bytesPerS)))
	}
	select {}
}

// writeHeader makes the file a safetensors file: eight bytes of length, a JSON
// table of tensors, data up to the size.
func writeHeader(f *os.File) error {
	const room = 256
	header, err := json.Marshal(map[string]any{"weight": map[string]any{
		"dtype": "U8", "shape": []int{weightBytes - room}, "data_offsets": []int{0, weightBytes - room}}})
	if err != nil {
		return err
	}
	for len(header) < room-8 {
		header = append(header, ' ')
	}
	if err := binary.Write(f, binary.LittleEndian, uint64(len(header))); err != nil {
		return err
	}
	if _, err := f.Write(header); err != nil {
		return err
	}
	return f.Truncate(weightBytes)
}
