// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidekeeper.dev/tidekeeper/internal/term"
)

// Located is an object with its cluster's kubeconfig context.
type Located[T any] struct {
	Context string
	Value   T
}

// Locate returns the objects of all clusters, each with the context of its cluster, in the order of
// answers. The function items returns the objects of a cluster. Clusters that could not be read are
// skipped.
func Locate[T, I any](answers []Answer[T], items func(T) []I) []Located[I] {
	var all []Located[I]
	for _, a := range answers {
		if a.Problem != "" {
			continue
		}
		for _, item := range items(a.Value) {
			all = append(all, Located[I]{a.Context, item})
		}
	}
	return all
}

// ValidateContexts rejects output formats that cannot show the kubeconfig context of an object.
func (o *ObjectOutput) ValidateContexts() error {
	if o.Format() == "name" {
		return fmt.Errorf("-o name does not show the cluster: write json, yaml or custom-columns=CONTEXT:.context,NAME:.metadata.name")
	}
	return nil
}

// SortLocated sorts the objects of all clusters by the JSONPath in --sort-by. The function object
// returns the API object of an element.
func SortLocated[I any](o *ObjectOutput, all []Located[I], object func(*I) runtime.Object) error {
	if o.sortBy == "" {
		return nil
	}
	items := make([]runtime.Object, len(all))
	for i := range all {
		items[i] = object(&all[i].Value)
	}
	places, err := order(items, o.sortBy)
	if err != nil {
		return fmt.Errorf("--sort-by %s: %w", o.sortBy, err)
	}
	before := slices.Clone(all)
	for i, place := range places {
		all[i] = before[place]
	}
	return nil
}

// PrintLocated prints the objects of all clusters as one list in JSON or YAML. It adds the field
// context to each object and, if some clusters could not be read, the field errors to the list. The
// function fields returns the other fields of an object.
func PrintLocated[I any](o *ObjectOutput, out io.Writer, list schema.GroupVersionKind, all []Located[I], problems []Problem, fields func(*I) (map[string]any, error)) error {
	printed := &unstructured.UnstructuredList{}
	printed.SetUnstructuredContent(map[string]any{"metadata": map[string]any{}})
	printed.SetGroupVersionKind(list)
	printed.Items = make([]unstructured.Unstructured, len(all))
	for i := range all {
		object, err := fields(&all[i].Value)
		if err != nil {
			return err
		}
		object["context"] = all[i].Context
		printed.Items[i].Object = object
	}
	if len(problems) > 0 {
		errors := make([]any, len(problems))
		for i, p := range problems {
			errors[i] = map[string]any{"context": p.Context, "error": p.Error}
		}
		printed.Object["errors"] = errors
	}
	return o.Print(printed, out)
}

// AddContexts inserts a first column into a table, with the kubeconfig context of each row.
func AddContexts[I any](t *term.Table, rows []Located[I]) {
	t.Columns = append([]term.Column{{Header: "CONTEXT", Name: true}}, t.Columns...)
	for i := range t.Rows {
		t.Rows[i] = append([]term.Cell{term.Text(rows[i].Context)}, t.Rows[i]...)
	}
}

// AddOthers adds a table row for each cluster without objects. The row contains the text `nothing`
// or, if the cluster could not be read, the reason.
func AddOthers[T, I any](t *term.Table, answers []Answer[T], rows []Located[I], nothing string) {
	for _, a := range answers {
		if a.Problem != "" {
			t.Rows = append(t.Rows, []term.Cell{term.Text(a.Context), {Text: a.Problem, Color: term.Red, Span: true}})
		} else if !slices.ContainsFunc(rows, func(l Located[I]) bool { return l.Context == a.Context }) {
			t.Rows = append(t.Rows, []term.Cell{term.Text(a.Context), {Text: nothing, Span: true}})
		}
	}
}
