// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

// A phrase is a pattern that must not occur in this project's prose. A space in the pattern matches
// any white space, so that a phrase is also found across a line break.
type phrase struct {
	pattern string
	// except is a pattern for allowed matches. It is matched against the prose from the start of
	// the match.
	except string
	// say is the suggested replacement for the phrase.
	say string
	// example is a sentence that the pattern matches. fine is a sentence that it must not match.
	example, fine string
}

var phrases = []phrase{
	{pattern: `tells? whether`, say: `"reports whether"`, example: "isReady tells whether it is ready", fine: "isReady reports whether it is ready"},
	{pattern: `(?:is|are|be|been|being|was|were|gets?|not) told`, say: `"reported", "known", "given" or "logged"`, example: "the pool is told of it", fine: "the event was reported"},
	{pattern: `(?:tell|tells|told|telling) of`, say: `"reports"`, example: "the event tells of all nodes", fine: "the event names all nodes"},
	{pattern: `stands? (?:in|beside|under|behind|there|twice)`, except: `stand in for`, say: `"is in", "is beside"`, example: "what stands in the record", fine: "what is in the record"},
	{pattern: `standing (?:in|beside|under)`, except: `standing in for`, say: `"in", "beside"`, example: "what is standing in the cache", fine: "what is in the cache"},
	{pattern: `whoever|whosoever|whomever`, say: `name the actor: "users", "clients", "contributors"`, example: "whoever edits it", fine: "users who edit it"},
	{pattern: `(?:to|for|of|by|from|with) who`, say: `name the actor`, example: "given to who asks", fine: "given to clients that ask"},
	{pattern: `(?:some|any|no)body`, except: `nobody:|nobody \(6553|somebody removes it`, say: `name the actor, or "another client", "no one"`, example: "somebody else changed it", fine: "another client changed it"},
	{pattern: `anew`, say: `"again"`, example: "the node is made anew", fine: "the node is created again"},
	{pattern: `for ever`, say: `"forever"`, example: "it would wait for ever", fine: "it would wait forever"},
	{pattern: `so many`, say: `the number: "n of them", "that many"`, example: "one in so many seconds", fine: "one every n seconds"},
	{pattern: `with success`, say: `"successfully"`, example: "it ended with success", fine: "it ended successfully"},
	{pattern: `without success`, say: `"unsuccessfully", "failed"`, example: "it was tried without success", fine: "it was tried and failed"},
	{pattern: `how-?manieth`, say: `"nth", "which occurrence"`, example: "the how-manieth of them", fine: "every nth request"},
	{pattern: `be it`, say: `"even if it is", "whether"`, example: "a number, be it 0", fine: "a number, even 0"},
	{pattern: `(?:it|this|that|he) is no [a-z]+`, except: `\w+ is no (?:longer|more|less|older|newer|better|worse|one)\b`, say: `"it is not a"`, example: "it is no node", fine: "it is no longer a node"},
	{pattern: `in vain`, say: `"to no effect", "and does not get it"`, example: "it asks for it in vain", fine: "it does not get it"},
	{pattern: `in(?:to)? shape`, say: `"up to the spec", "consistent"`, example: "keeps nodes in shape", fine: "keeps nodes consistent"},
	{pattern: `rid of`, say: `"without", "removed"`, example: "nodes were rid of it", fine: "it was removed from nodes"},
	{pattern: `to (?:its|their) end`, say: `"until completion"`, example: "they run to their end", fine: "they run until completion"},
	{pattern: `ha(?:s|ve|d) (?:its|their) way`, say: `"wins"`, example: "the pool that has its way", fine: "the pool that wins"},
	{pattern: `lets? go of`, say: `"drops", "releases"`, example: "it lets go of the lease", fine: "it releases the lease"},
	{pattern: `the originals`, say: `"the original projects"`, example: "as the originals did", fine: "as the original projects did"},
	{pattern: `in thought`, say: `"simulates"`, example: "carried out in thought", fine: "simulated"},
	{pattern: `forerunners?`, say: `"predecessor"`, example: "the pod's forerunner", fine: "the pod's predecessor"},
	{pattern: `of [a-z]+ there (?:is|are|was|were)`, except: `of (?:which|what|whom)`, say: `"there are many nodes"`, example: "of nodes there are many", fine: "there are many nodes"},
	{pattern: `what there (?:is|are)`, say: `name it`, example: "lists what there is", fine: "lists all nodes"},
	{pattern: `mend(?:s|ed|ing)?`, say: `"fix"`, example: "mend the workload", fine: "fix the workload"},
	{pattern: `sees? to`, except: `sees? to(?:o|\w)`, say: `"check", "make sure"`, example: "see to the nodes", fine: "check the nodes"},
	{pattern: `(?:can|would|could|to) (?:be turned|turn it|turn)`, except: `\w+ (?:be )?turn(?:ed)? (?:it )?(?:on|off|into|green|out)`, say: `"can be set", "change"`, example: "what can be turned", fine: "what can be turned off"},
	{pattern: `operators? before`, except: `operators? before (?:it|the|a) `, say: `"the original projects"`, example: "the Erus of the operators before", fine: "the original projects"},
	{pattern: `goes? onto`, say: `"is added to"`, example: "the taint goes onto 3 nodes", fine: "the taint is added to 3 nodes"},
	{pattern: `brought up to date|Ready and up to date`, say: `"match the pool's spec"`, example: "3 nodes are Ready and up to date", fine: "3 nodes match the pool's spec"},
	{pattern: `lengths? of time`, say: `"duration"`, example: "write a length of time", fine: "write a duration"},
	{pattern: `a good while`, say: `the duration`, example: "it takes a good while", fine: "it takes a minute"},
	{pattern: `(?:no|any|some)thing whatsoever`, say: `"nothing"`, example: "it says nothing whatsoever", fine: "it says nothing"},
}

// startsWithWho matches "Who" as the subject of a sentence that is not a question.
var startsWithWho = regexp.MustCompile(`\bWho\s+[a-z][^.?!"]*(\??)`)

// exempt lists path prefixes of files that are not checked: generated files, copies, and the list
// of phrases itself.
var exempt = []string{
	"LICENSE",
	"api/applyconfiguration/",
	"charts/tidekeeper/files/",
	"config/crd/bases/",
	"config/rbac/role.yaml",
	"docs/reference/api.md",
	"docs/reference/commands.md",
	"docs/reference/configuration.md",
	"docs/reference/controllers.md",
	"docs/reference/kubernetes.md",
	"docs/reference/metrics.md",
	"hack/lint/words",
}

type compiled struct {
	phrase
	find, except *regexp.Regexp
}

// list holds the phrases with their compiled patterns.
var list = compile(phrases)

func compile(phrases []phrase) []compiled {
	all := make([]compiled, 0, len(phrases))
	for _, p := range phrases {
		c := compiled{phrase: p, find: regexp.MustCompile(`(?i)\b(?:` + spaces(p.pattern) + `)\b`)}
		if p.except != "" {
			c.except = regexp.MustCompile(`(?i)^(?:` + spaces(p.except) + `)`)
		}
		all = append(all, c)
	}
	return all
}

func spaces(pattern string) string {
	return strings.ReplaceAll(pattern, " ", `\s+`)
}
