package facts

import "testing"

func TestAddressIn(t *testing.T) {
	for text, want := range map[string]string{
		"[2026-11-30 17:06:48 TP1] world_size=2 rank=1 local_rank=1 distributed_init_method=tcp://127.0.0.1:24317 backend=gloo":            "127.0.0.1:24317",
		"(Worker pid=10239) INFO [parallel_state.py:1906] world_size=1 rank=0 distributed_init_method=file:///run/x backend=gloo":          "",
		"[W222 TCPStore.cpp:340] [c10d] TCP client failed to connect/validate to host 10.0.0.1:29500 - retrying (try=3, timeout=600000ms)": "10.0.0.1:29500",
		"[W222 socket.cpp:464] [c10d] The client socket has timed out after 600000ms while trying to connect to (10.0.0.1, 29500).":        "10.0.0.1:29500",
		"[W222 socket.cpp:464] [c10d] The client socket has timed out after 600000ms while trying to connect to (fd00::7, 29500).":         "[fd00::7]:29500",
		"rank 0 distributed_init_method=tcp://[::1]:29500 backend=nccl":                                                                    "[::1]:29500",
		"":              "",
		"connect to (,": "",
	} {
		if got := addressIn(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzAddressIn(f *testing.F) {
	f.Add("connect to (10.0.0.1, 29500).")
	f.Add("init_method=tcp://[::1]:1")
	f.Fuzz(func(t *testing.T, text string) {
		if a := addressIn(text); len(a) > 100 {
			t.Errorf("%q", a)
		}
	})
}
