package engines

import "github.com/whyhang/whyhang/probes/evidence"

// all are the engines in the order in which they are tried. The last one is no
// engine: it holds what the libraries under all of them print.
var all = []*Engine{&sglang, &vllm, &llamacpp, &libraries}

// All are the engines whyhang knows, in the order in which they are tried.
func All() []*Engine { return all }

// ByID is the engine with that ID, nil if there is none.
func ByID(id string) *Engine {
	for _, e := range all {
		if e.ID == id {
			return e
		}
	}
	return nil
}

// Signatures are the known log lines of all engines and of the libraries
// under them.
func Signatures() []evidence.Signature {
	var all []evidence.Signature
	for _, e := range All() {
		all = append(all, e.Signatures...)
	}
	return all
}

// Formats are the line formats of all engines.
func Formats() []evidence.LineFormat {
	var all []evidence.LineFormat
	for _, e := range All() {
		all = append(all, e.Formats...)
	}
	return all
}
