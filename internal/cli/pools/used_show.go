// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// beforeUsed is the header of the table column before which the column USED is inserted.
const beforeUsed = "FITS NOW"

// addUsed adds the column USED, the measured usage of the nodes of each pool, to the table of -o
// wide.
func addUsed(t *term.Table, items []tidekeeperv1.NodePool, used []*capacity.Used) {
	at := slices.IndexFunc(t.Columns, func(c term.Column) bool { return c.Header == beforeUsed })
	t.Columns = slices.Insert(t.Columns, at, term.Column{Header: "USED", Drop: 3})
	for i := range t.Rows {
		t.Rows[i] = slices.Insert(t.Rows[i], at, usedCell(items[i].Status.NodeCount, used[i]))
	}
}

func usedCell(nodes int32, u *capacity.Used) term.Cell {
	switch {
	case u != nil:
		return term.Cell{Text: view.UsedText(u, "%s (of %d of %d nodes)"), Short: view.UsedText(u, "%s (%d/%d)")}
	case nodes == 0:
		return term.Text("-")
	default:
		return term.Text(view.NotAvailable)
	}
}

// withUsed returns the list of pools for -o json and -o yaml. A pool whose nodes have a known usage
// has the additional field used, next to the field status.
func withUsed(list *tidekeeperv1.NodePoolList, used []*capacity.Used) (*unstructured.UnstructuredList, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(list)
	if err != nil {
		return nil, err
	}
	items, _ := fields["items"].([]any)
	for i, u := range used {
		if err := addUsedField(items[i].(map[string]any), u); err != nil {
			return nil, err
		}
	}
	shown := &unstructured.UnstructuredList{}
	shown.SetUnstructuredContent(fields)
	return shown, nil
}

// addUsedField adds the field used, the measured usage of the pool's nodes, to the fields of a
// pool. It does nothing if u is nil (unknown).
func addUsedField(pool map[string]any, u *capacity.Used) (err error) {
	if u != nil {
		pool["used"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(u)
	}
	return err
}
