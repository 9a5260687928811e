package chat

import "testing"

// incidentAnswer is the answer of the incident, cut off at 32 tokens.
const incidentAnswer = " The user is asking for the answer to \"2+2\" and wants me to reply in one word.\n\n 2+2 = 4\n\n The word"

func TestIsRight(t *testing.T) {
	for _, s := range []string{
		"4", " 4", "4.", "4!", "**4**", "*4*", "_4_", "__4__", "`4`", "(4)", "\"4\"", "'4'", "$4$", "\\boxed{4}", "<b>4</b>", "[4]", "4\n",
		"Four", "four", "FOUR.", "**Four**", "\"Four\"", "It's four.", "equals four", "= 4", "=4", "2+2=4", "2+2 = 4", "2 + 2 = **4**", "2+2=4.",
		"The answer is 4.", "The sum is 4, of course", "4.0", "4.00", "4 (four)", "4️⃣", "４", "2+2等于4。", "答案是4", "4입니다", "Answer:4", "Answer: 4",
		"4 = 2+2", "- 4", "* 4", "• 4", "1. 4", "2 + 2 is 4 - simple", "two plus two is four", "2+2=4 and 4+4=8", "4; done",
		"The answer to this classic math problem is 4.", incidentAnswer,
		"<think>Simple.</think>\n4", "Some say 2+2=5, but 2+2=4", "The answer is 2+2 = 4", "2+2 is 2 plus 2, which makes 4", "That is one word: 4", "My answer is one word: Four",
		"The answer is:\n\n4", "> 4", "4</s>", "2+2\n4", "Sum:\t4", "4…", "“4”", "=> 4", "→4",
	} {
		if !isRight(s) {
			t.Errorf("not right: %q", s)
		}
	}
	for _, s := range []string{
		"", " ", "The answer is \"2+2\"", "2+2", "What is 2+2? Reply in one word.", "22", "42", "14", "2.4", "4.2", "4,000", "1,4", "0.4", "44", "-4", "−4", "= -4",
		"4th", "4k", "4x", "4%", "v4", "GPT-4", "Qwen4", "4-bit", "2-4", "24/7", "3/4", "4/5", "4:30", "12:4", "14:4", "2024-4-1", "½4", "4²",
		"2 + 4", "4+4=8", "4 + 4", "2*4", "4 * 2 = 8", "8 / 4", "2^4", "6 - 4", "4 - 2",
		"fourteen", "fourth", "forty-four", "forty four", "twenty-four", "twenty four", "petit-fours", "four hundred", "four thousand", "four point five", "fours",
		"not 4", "It is not four", "5, not 4", "isn't 4", "minus four", "2 + 2 = 5", "five", "Five", "Yes", "Paris", "I am a large language model.",
		"1. Paris\n2. London\n3. Rome\n4. Berlin", "Some say 2+2=4, but 2+2=5", "2+2 = 4? No, the answer is 22", "fou r", "f", "FO", "4_x9", "!!!!!!!!",
	} {
		if isRight(s) {
			t.Errorf("right: %q", s)
		}
	}
}

func TestContradicts(t *testing.T) {
	for s, want := range map[string]bool{
		"2+2 = 5":                     true,
		"2 + 2 is **22**":             true,
		"Two plus two equals five":    true,
		"The answer is: 3":            true,
		"answer: \"7\"":               true,
		"2+2=40":                      true,
		"2+2=4.5":                     true,
		"2+2 = 4":                     false,
		"2+2 = 4.0":                   false,
		"The answer is \"2+2\"":       false,
		"The answer is 2 plus 2":      false,
		"The answer is one word":      false,
		"The answer is two words, so": false,
		"2 + 2 is 2 and 2":            false,
		"the user asks 2+2":           false,
		incidentAnswer:                false,
	} {
		if got := contradicts(s) >= 0; got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func TestIsGarbage(t *testing.T) {
	for _, tc := range []struct {
		s           string
		cutOff      bool
		matchedStop string
		want        bool
	}{
		{"!!!!!!!!!!!!", true, "", true},
		{"! ! ! ! ! ! ! !", true, "", true},
		{"aaaaaaaaab", true, "", true},
		{"44444444444444", true, "", true},
		{"\uFFFD\uFFFDab", false, "", true},
		{"vier \uFFFD", true, "", false}, // half a character at the cut
		{"vier \uFFFD", false, "", true},
		{"...", false, "", true},
		{"?", false, "", true},
		{"<unk><unk><unk>", true, "", true},
		{"[PAD] [PAD]", true, "", true},
		{"nan nan nan", true, "", true},
		{"NaN", false, "", true},
		{"the the the the the the the the", true, "", true},
		{"", false, "NaN happened", true},
		{"4", false, "NaN happened", true},
		{"", true, "", false},
		{"4", false, "", false},
		{"**4**", false, "", false},
		{"Four", false, "", false},
		{"四", false, "", false},
		{"The answer is \"2+2\"", false, "", false},
		{"4", false, "151645", false},
		{incidentAnswer, true, "", false},
		{"<think>\nOkay, the user asks what 2+2 is", true, "", false},
	} {
		if why, got := isGarbage(tc.s, tc.cutOff, tc.matchedStop); got != tc.want || got == (why == "") {
			t.Errorf("%q (cut off %v, matched %q): %v %q", tc.s, tc.cutOff, tc.matchedStop, got, why)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{incidentAnswer, "4", "2 + 2 is **22**", "4.0", "４", "4️⃣", "fourteen", "\xff4\xff", "3. x\n4. y", "4.", "four "} {
		f.Add(s, true)
	}
	c := &Client{}
	f.Fuzz(func(t *testing.T, s string, cutOff bool) {
		if at := saysFour(s); at >= len(s) || at < -1 {
			t.Fatalf("found at %d of %d bytes", at, len(s))
		}
		isRight(s)
		isGarbage(s, cutOff, "")
		readable(s)
		if got := (&checker{CheckOptions: CheckOptions{Client: c}}).around(s); len(got) > 4*120 {
			t.Errorf("%d bytes quoted", len(got))
		}
	})
}
