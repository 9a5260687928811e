package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/chat/fakeserver"
)

// serve is a small chat server: no model behind it, but real sockets, real
// streams, and a right answer to 2+2.
func serve(ready func()) error {
	s, err := fakeserver.New()
	if err != nil {
		return err
	}
	s.Serve(fakeserver.Model{ID: "demo-model", Answers: answer, TTFT: 30 * time.Millisecond, Rate: 400})
	fmt.Printf("demo server: listening on %s\n", s.URL())
	ready()
	select {}
}

// answer is all the demo model knows.
func answer(prompt string) string {
	if strings.Contains(prompt, "2+2") {
		return "4"
	}
	return strings.Repeat("The demo model has no more to say than this. ", 40)
}
