// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"

	"tidekeeper.dev/tidekeeper/internal/term"
)

// customColumns is the prefix of kubectl's output format custom-columns=HEADER:.path,…. The library
// that the plugin uses for output formats does not support this format.
const customColumns = "custom-columns="

// columnPrinter prints a table row for each object, with a column for each JSONPath.
type columnPrinter struct {
	table term.Table
	paths []*jsonpath.JSONPath
}

func newColumnPrinter(spec string, noHeader bool) (*columnPrinter, error) {
	p := &columnPrinter{table: term.Table{NoHeader: noHeader}}
	for column := range strings.SplitSeq(spec, ",") {
		header, path, ok := strings.Cut(column, ":")
		if !ok || header == "" || path == "" {
			return nil, fmt.Errorf("%q is not a column: write HEADER:.path, such as NAME:.metadata.name", column)
		}
		parsed, err := parsePath(path)
		if err != nil {
			return nil, err
		}
		p.table.Columns = append(p.table.Columns, term.Column{Header: header})
		p.paths = append(p.paths, parsed)
	}
	return p, nil
}

// parsePath parses a JSONPath in any form that kubectl accepts: with or without braces and a
// leading dot.
func parsePath(path string) (*jsonpath.JSONPath, error) {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
	if !strings.HasPrefix(path, ".") {
		path = "." + path
	}
	parsed := jsonpath.New("path").AllowMissingKeys(true)
	return parsed, parsed.Parse("{" + path + "}")
}

// PrintObj implements printers.ResourcePrinter.
func (p *columnPrinter) PrintObj(list runtime.Object, out io.Writer) error {
	table := p.table
	err := meta.EachListItem(list, func(item runtime.Object) error {
		var row []term.Cell
		for _, path := range p.paths {
			values, err := valuesAt(item, path)
			if err != nil {
				return err
			}
			text := "<none>"
			if len(values) > 0 {
				text = strings.Trim(fmt.Sprint(values), "[]")
			}
			row = append(row, term.Text(text))
		}
		table.Rows = append(table.Rows, row)
		return nil
	})
	if err != nil {
		return err
	}
	return table.WriteTo(out, term.Screen{})
}

// valuesAt evaluates a JSONPath on an object, and returns the values at the path. It omits null
// values.
func valuesAt(o runtime.Object, path *jsonpath.JSONPath) ([]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	results, err := path.FindResults(fields)
	if err != nil {
		return nil, err
	}
	var values []any
	for _, found := range results {
		for _, value := range found {
			if value.IsValid() && value.CanInterface() && value.Interface() != nil {
				values = append(values, value.Interface())
			}
		}
	}
	return values, nil
}
