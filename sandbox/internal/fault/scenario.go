// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scenario is the content of a YAML file of fault rules. Each rule selects requests or watch events
// and injects a fault into them.
type scenario struct {
	Rules []Rule `yaml:"rules"`
}

// body is the request body with which clients of the proxy's control API select watches to cut or
// freeze.
type body struct {
	Match Match `yaml:"match"`
}

// Parse decodes and validates a scenario (a file of rules) in YAML or JSON. The returned error is a
// MistakesError, in which each mistake in a rule begins with a line number.
func Parse(text []byte) ([]Rule, error) {
	var s scenario
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	var mistakes MistakesError
	err := decoder.Decode(&s)
	if partial := (*yaml.TypeError)(nil); errors.As(err, &partial) && len(s.Rules) > 0 {
		// Despite a type error, the YAML library has decoded all other fields, so validate these
		// fields, too.
		mistakes, err = readable(err), nil
	}
	if errors.Is(err, io.EOF) || err == nil && len(s.Rules) == 0 {
		return nil, MistakesError{errors.New(`line 1: there are no rules: want "rules:" and a list of them`)}
	} else if err != nil {
		return nil, readable(err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, MistakesError{errors.New("there is more than one YAML document: put all rules into one list")}
	}
	lines, err := ruleLines(text)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i := range s.Rules {
		rule := &s.Rules[i]
		if rule.Name == "" {
			rule.Name = fmt.Sprintf("rule-%d", i+1)
		}
		found := rule.validate()
		if undecoded(mistakes, lines, i) {
			found = nil // The fields that seem to be missing may be the fields that could not be decoded.
		}
		if names[rule.Name] {
			found.add("another rule has that name")
		}
		for _, err := range found {
			mistakes.add("line %d: rule %q: %w", lines[i], rule.Name, err)
		}
		names[rule.Name] = true
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return s.Rules, nil
}

// undecoded reports whether a YAML mistake is in the rule with index i. `lines` holds the first
// line number of each rule.
func undecoded(mistakes MistakesError, lines []int, i int) bool {
	return slices.ContainsFunc(mistakes, func(err error) bool {
		var line int
		_, notThere := fmt.Sscanf(err.Error(), "line %d:", &line)
		return notThere == nil && line >= lines[i] && (i+1 == len(lines) || line < lines[i+1])
	})
}

// ruleLines returns the first line number of each rule. The given text must be valid YAML.
func ruleLines(text []byte) ([]int, error) {
	var s struct {
		Rules []yaml.Node `yaml:"rules"`
	}
	if err := yaml.Unmarshal(text, &s); err != nil {
		return nil, readable(err)
	}
	lines := make([]int, len(s.Rules))
	for i, node := range s.Rules {
		lines[i] = node.Line
	}
	return lines, nil
}

var unknownField = regexp.MustCompile(`^(line \d+): field (.*) not found in type fault\.(.*)$`)

// readable rephrases the YAML library's errors in terms of rules and their fields.
func readable(err error) MistakesError {
	texts := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if typeError := (*yaml.TypeError)(nil); errors.As(err, &typeError) {
		texts = typeError.Errors
	}
	var mistakes MistakesError
	for _, text := range texts {
		if m := unknownField.FindStringSubmatch(text); m != nil {
			text = fmt.Sprintf("%s: a %s has no field %q", m[1], strings.ToLower(m[3]), m[2])
		}
		mistakes.add("%s", strings.ReplaceAll(text, "\n", " "))
	}
	return mistakes
}

// ParseMatch decodes a request body of the form match: {...}, which selects watches to cut or
// freeze. `kind` determines which criteria are valid.
func ParseMatch(text []byte, kind Kind) (Match, error) {
	var b body
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&b); err != nil {
		return Match{}, readable(err)
	}
	if found := b.Match.validate(kind, kinds[kind]); len(found) > 0 {
		return Match{}, found
	}
	return b.Match, nil
}
