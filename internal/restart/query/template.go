// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Variables that a query may contain.
const (
	namespaceVariable = "namespace"
	nameVariable      = "name"
)

// template is a query that was split at its variables. The elements with odd indexes are the names
// of variables.
type template []string

// parseTemplate splits a query at its variables. It rejects variables inside string literals. As
// each value is inserted as a quoted string, no value can then change the structure of the query.
func parseTemplate(query string) (template, error) {
	var t template
	from := 0
	for i := 0; i < len(query); i++ {
		switch c := query[i]; c {
		case '"', '\'', '`':
			end := endOfString(query, i)
			if end < 0 {
				return nil, fmt.Errorf("query has a string without an end: %.40s", query[i:])
			}
			if variable := variableIn(query[i:end]); variable != "" {
				return nil, fmt.Errorf("query has $%[1]s in a string: write $%[1]s without quotes, as in namespace=$namespace; it brings its own", variable)
			}
			i = end - 1
		case '#': // beginning of a comment
			if end := strings.IndexByte(query[i:], '\n'); end >= 0 {
				i += end
			} else {
				i = len(query)
			}
		case '$':
			variable := identifier(query[i+1:])
			if variable != namespaceVariable && variable != nameVariable {
				return nil, fmt.Errorf("query has $%.40s: write $namespace or $name", variable)
			}
			t = append(t, query[from:i], variable)
			i += len(variable)
			from = i + 1
		}
	}
	if strings.ContainsRune(query, 0) {
		return nil, errors.New("query has a zero byte")
	}
	return append(t, query[from:]), nil
}

// endOfString returns the index after the PromQL string literal that begins at the given index; -1
// if the literal is not terminated.
func endOfString(query string, begin int) int {
	quote := query[begin]
	for i := begin + 1; i < len(query); i++ {
		switch {
		case query[i] == quote:
			return i + 1
		case query[i] == '\\' && quote != '`':
			i++
		}
	}
	return -1
}

// variableIn returns the first variable in the given text; "" if there is none.
func variableIn(text string) string {
	for i := range len(text) {
		if text[i] != '$' {
			continue
		}
		if name := identifier(text[i+1:]); name == namespaceVariable || name == nameVariable {
			return name
		}
	}
	return ""
}

// identifier returns the longest identifier at the beginning of the given text; "" if there is
// none.
func identifier(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if end < 0 {
		return text
	}
	return text[:end]
}

// render returns the query in which the variables are replaced with the quoted names of a namespace
// and a workload.
func (t template) render(namespace, name string) string {
	var b strings.Builder
	for i, piece := range t {
		switch {
		case i%2 == 0:
			b.WriteString(piece)
		case piece == namespaceVariable:
			b.WriteString(strconv.Quote(namespace))
		default:
			b.WriteString(strconv.Quote(name))
		}
	}
	return b.String()
}
