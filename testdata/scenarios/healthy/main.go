// Healthy is a Go program under load: goroutines hand locks, channels and wait
// groups to each other, and some threads are inside blocking calls. It is built
// by a test; see ../healthy.c for the idea.
package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"
)

func main() {
	var mutexes [6]sync.RWMutex
	work := make(chan int, 4)
	for range 100 {
		go func() {
			for {
				a, b := rand.IntN(len(mutexes)), rand.IntN(len(mutexes))
				if a >= b {
					continue
				}
				mutexes[a].Lock()
				mutexes[b].RLock()
				select {
				case work <- a:
				default:
				}
				time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
				mutexes[b].RUnlock()
				mutexes[a].Unlock()
			}
		}()
	}
	for range 4 {
		go func() {
			for range work {
				f, err := os.ReadFile("/proc/self/stat") // threads come and go
				if err != nil || len(f) == 0 {
					os.Exit(1)
				}
			}
		}()
	}
	fmt.Println("ready")
	var b [1]byte
	_, _ = os.Stdin.Read(b[:])
}
