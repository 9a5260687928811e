package unresponsive

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// WrongAnswer is a server that answers fluently and wrongly.
var WrongAnswer = rule.Rule{
	ID:      "wrong-answer",
	Verdict: rule.Unresponsive,
	Title:   "The server answers, and the answer is wrong",
	Doc: `Looks for readable text without a 4 in it as the answer to "What is 2+2?", twice:
a small model may stumble over "Reply in one word.", so the plain question
follows before the answer counts as wrong. Wrong weights, a wrong chat template
or a broken kernel give such answers.

What would make it wrong: a model that cannot add, or one for another task.`,
	Needs:      []evidence.Need{evidence.NeedCheck},
	Suppresses: []rule.ID{"ready-by-its-word"},
	Eval: func(c *rule.Case) []rule.Finding {
		return answerFinding(c, evidence.CheckWrong, rule.WrongAnswer, "It answers, and wrongly")
	},
	Against: againstAnswer,
}

// GarbageAnswer is a server whose answer is no language.
var GarbageAnswer = rule.Rule{
	ID:      "garbage-answer",
	Verdict: rule.Unresponsive,
	Title:   "The server answers with garbage",
	Doc: `Looks for an answer that is one character repeated ("!!!!!!!!"), replacement
characters, or without a single letter or digit. Tokens flow and the model is
broken: NaN in the logits, a bad quantisation, a damaged checkpoint. A benchmark
of such a server measures nothing.

What would make it wrong: a model that really answers in punctuation.

Sources: reports of vLLM and SGLang servers that print only "!".`,
	Needs:      []evidence.Need{evidence.NeedCheck},
	Suppresses: []rule.ID{"ready-by-its-word", "wrong-answer"},
	Eval: func(c *rule.Case) []rule.Finding {
		return answerFinding(c, evidence.CheckGarbage, rule.GarbageAnswer, "It answers with garbage")
	},
	Against: againstAnswer,
}

func answerFinding(c *rule.Case, v evidence.CheckVerdict, cause rule.Cause, says string) []rule.Finding {
	if c.Check == nil || c.Check.Verdict != v {
		return nil
	}
	f := rule.Finding{Cause: cause, Strength: rule.Strong, Says: says + ": " + c.Check.Says + ".",
		Cites:   []rule.Cite{c.Cite(c.Check.Says, "check", "verdict")},
		FlipsIf: []string{"it answers the plain question with a 4"},
		Next:    []rule.Step{{Do: "Do not benchmark it; check the weights, the quantisation and the chat template", Risk: rule.RiskNone}},
	}
	for i, e := range c.Check.Exchanges {
		field := "content"
		if e.Content == "" {
			field = "reasoning"
		}
		f.Cites = append(f.Cites, c.Cite(fmt.Sprintf("answer to %q", e.Prompt), "check", "exchanges", i, field))
	}
	return []rule.Finding{f}
}

func againstAnswer(c *rule.Case) *rule.Because {
	return &rule.Because{Says: c.Check.Says, Cites: []rule.Cite{c.Cite("result of the check", "check", "verdict")}}
}
