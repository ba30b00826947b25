// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

// scenario is how rules are written: rules: [...].
type scenario struct {
	Rules []Rule `yaml:"rules"`
}

// body is how watches are chosen that something is done to at once.
type body struct {
	Match Match `yaml:"match"`
}

// Parse reads a scenario, which is YAML or JSON, and checks it. An error is one
// line and begins with the number of the line that it is about.
func Parse(text []byte) ([]Rule, error) {
	var s scenario
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&s); errors.Is(err, io.EOF) || err == nil && len(s.Rules) == 0 {
		return nil, errors.New(`line 1: there are no rules: want "rules:" and a list of them`)
	} else if err != nil {
		return nil, readable(err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one YAML document: put all rules into one list")
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
		err := rule.validate()
		if err == nil && names[rule.Name] {
			err = errors.New("another rule has that name")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: rule %q: %w", lines[i], rule.Name, err)
		}
		names[rule.Name] = true
	}
	return s.Rules, nil
}

// ruleLines returns the lines on which the rules of a text begin that was
// decoded before.
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

// readable takes from an error of the YAML library what its reader can use.
func readable(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if typeError := (*yaml.TypeError)(nil); errors.As(err, &typeError) {
		text = typeError.Errors[0]
	}
	if m := unknownField.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("%s: a %s has no field %q", m[1], strings.ToLower(m[3]), m[2])
	}
	return errors.New(strings.ReplaceAll(text, "\n", " "))
}

// validate refuses a rule that makes no sense.
func (r Rule) validate() error {
	if problems := validation.IsDNS1123Subdomain(r.Name); len(problems) > 0 {
		return fmt.Errorf("that cannot be a name: %s", problems[0])
	}
	traits, known := kinds[r.Fault.Kind]
	if !known {
		return fmt.Errorf("fault.kind %q: want one of %s", r.Fault.Kind, join(Kinds()))
	}
	return cmp.Or(
		r.Match.validate(r.Fault.Kind, traits),
		r.Events.validate(r.Fault.Kind, traits),
		r.Count.validate(r.Fault.Kind),
		r.Fault.validate(traits),
	)
}

var verbs = append(slices.Clone(answered), "watch", VerbWatchList, "read", "write", "*")

func (m Match) validate(kind Kind, traits traits) error {
	for _, pattern := range m.Verbs {
		verb := strings.TrimPrefix(pattern, "!")
		if len(m.Paths) == 0 && !slices.Contains(verbs, verb) {
			return fmt.Errorf("match.verbs %q: want one of %s", pattern, join(verbs))
		}
		if traits.verbs != nil && verb == pattern && !slices.ContainsFunc(traits.verbs, func(v string) bool { return verbFits(verb, v) }) {
			return fmt.Errorf("match.verbs %q: %s is done only to %s", pattern, kind, join(traits.verbs))
		}
	}
	if len(m.Paths) > 0 {
		if len(m.Resources)+len(m.Namespaces)+len(m.Names) > 0 {
			return errors.New("match.paths are of requests that are not for a resource: leave resources, namespaces and names out, or paths")
		}
		if traits.events || kind == Stale {
			return fmt.Errorf("match.paths: %s is done only to requests for resources", kind)
		}
	}
	for _, pattern := range m.Paths {
		if !strings.HasPrefix(strings.TrimPrefix(pattern, "!"), "/") {
			return fmt.Errorf(`match.paths %q: want one that begins with "/"`, pattern)
		}
	}
	for _, pattern := range m.Resources {
		resource, subresource, slash := strings.Cut(strings.TrimPrefix(pattern, "!"), "/")
		if resource == "" || slash && (subresource == "" || strings.Contains(subresource, "/")) || pattern != strings.ToLower(pattern) {
			return fmt.Errorf("match.resources %q: want one like nodes, deployments.apps or pods/status", pattern)
		}
	}
	return noneEmpty(map[string][]string{"namespaces": m.Namespaces, "names": m.Names, "userAgents": m.UserAgents}, "match")
}

var eventTypes = []string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "*"}

func (e Events) validate(kind Kind, traits traits) error {
	if !traits.events && (!e.all() || e.Initial) {
		return fmt.Errorf("events: %s is done to requests and not to events: leave it out", kind)
	}
	for _, pattern := range e.Types {
		if !slices.Contains(eventTypes, strings.TrimPrefix(pattern, "!")) {
			return fmt.Errorf("events.types %q: want one of %s", pattern, join(eventTypes))
		}
	}
	return noneEmpty(map[string][]string{"namespaces": e.Namespaces, "names": e.Names}, "events")
}

func (c Count) validate(kind Kind) error {
	if c.From < 0 || c.Every < 0 || c.Times < 0 {
		return errors.New("count: from, every and times cannot be negative")
	}
	if kind == Freeze && (c.Every > 0 || c.Times > 0) {
		return errors.New("count: a Freeze lasts until its rule is removed: only from makes sense")
	}
	return nil
}

func (f Fault) validate(traits traits) error {
	given := f.given()
	for _, field := range given {
		if !slices.Contains(traits.fields, field) {
			return fmt.Errorf("fault.%s: %s has no such field%s", field, f.Kind, but(traits.fields))
		}
	}
	for _, field := range traits.needs {
		if !slices.Contains(given, field) {
			return fmt.Errorf("fault.%s: %s needs it", field, f.Kind)
		}
	}
	if f.Kind == Error && (f.Code < 400 || f.Code > 599) {
		return fmt.Errorf("fault.code %d: want an HTTP status from 400 to 599", f.Code)
	}
	if time.Duration(f.RetryAfter)%time.Second != 0 {
		return fmt.Errorf("fault.retryAfter %s: want whole seconds, HTTP knows no others", f.RetryAfter)
	}
	return nil
}

func but(fields []field) string {
	if len(fields) == 0 {
		return ""
	}
	return ", but " + join(fields)
}

func noneEmpty(lists map[string][]string, of string) error {
	for name, list := range lists {
		if slices.Contains(list, "") {
			return fmt.Errorf(`%s.%s: "" fits nothing: leave it out, or write "*" for any`, of, name)
		}
	}
	return nil
}

func join[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = string(item)
	}
	return strings.Join(texts, ", ")
}

// ParseMatch reads which requests are meant: match: {...}, for a fault of that
// kind.
func ParseMatch(text []byte, kind Kind) (Match, error) {
	var b body
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&b); err != nil {
		return Match{}, readable(err)
	}
	return b.Match, b.Match.validate(kind, kinds[kind])
}
