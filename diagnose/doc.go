// Package diagnose tells the story of one run: find the target, look until it
// is known what happens, ask if it is up, judge. diagnose.go reads like that
// story; watch.go is the looking, ask.go the asking, replay.go the judging of
// a saved snapshot.
//
// The package joins probes and rules. It may not judge by itself and may not
// print.
package diagnose
