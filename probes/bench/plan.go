package bench

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
)

// The plan of a run.
const (
	warmUpTokens = 32
	streamTokens = 256
	// minStreams are always run; maxStreams when the rates scatter more than
	// enoughPct, the half width of the confidence interval as a part of the
	// mean.
	minStreams = 3
	maxStreams = 5
	enoughPct  = 5.0
	// minRateTokens is the least length a decode rate is computed from.
	minRateTokens = 8
	// minITLs is the least number of gaps for a 99th percentile.
	minITLs = 100
)

// prompts are natural text of three kinds, as prose, code and lists differ in
// how well speculative decoding guesses them. All differ from the first words
// on: equal prompts would share a prefix cache, and in a mixture of experts
// the same experts.
var prompts = [maxStreams]string{
	`A lighthouse keeper on a small northern island has kept a diary for thirty years. ` +
		`Write the entry for the night on which the lamp went out during a storm while a fishing boat was still at sea. ` +
		`Describe what he heard, what he tried first, what finally helped, and what he thought about when the morning came. ` +
		`Use plain words and long, quiet paragraphs.`,
	`In Python, write a class that keeps the most recent values of a sensor in a ring buffer. ` +
		`It needs a method to add a value with its time stamp, one that returns the average over the last n seconds, ` +
		`and one that finds the longest gap between two values. Handle an empty buffer and times that run backwards. ` +
		`Add a docstring to every method and a short example at the end.`,
	`List everything a group of six people should pack for a five day walk through mountains in autumn. ` +
		`Give one item on each line, with its weight in grams and a short reason. Begin with shelter and sleep, go on with ` +
		`clothes for rain and cold, then cooking and food for each day, then maps, light, repair and first aid. ` +
		`End with what can be left at home.`,
	`Explain to a curious neighbour how bread rises. Begin with what yeast does with sugar, then say why kneading matters, ` +
		`what happens in the oven minute by minute, and why a loaf collapses when the door is opened too early. ` +
		`Compare a quick white loaf with a slow rye one, and close with three mistakes that beginners make and how to notice ` +
		`each of them in time.`,
	`Write a Go function that merges overlapping time ranges from two calendars into a list of busy hours, sorted by start. ` +
		`Show the type for a range, the function itself, and a table test with ranges that touch, contain one another, ` +
		`cross midnight or are empty. Say after the code how long it takes for n ranges and why sorting dominates.`,
}

// warmUpPrompt is like none of the others.
const warmUpPrompt = `Tell the story of a canal town in which every bridge has its own market, and of the ferryman who knows them all.`

// runID names a run in the server's log.
func runID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return hex.EncodeToString(b[:])
}

// withNonce puts what makes a prompt unique in front of it, so that no cache
// of earlier prompts helps beyond the chat template.
func withNonce(run string, n int, prompt string) string {
	return fmt.Sprintf("[%s-%d] %s", run, n, prompt)
}
