// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/internal/migrate"
)

// print prints the result of the conversion. byHand is the number of settings and steps that the
// user must migrate manually, because the output does not cover them.
func (o *options) print(result migrate.Result) (byHand int, err error) {
	for _, r := range result.Remarks {
		if r.Severity == migrate.LeftOut {
			byHand++
		}
		o.Console.Note(fmt.Sprint(r))
	}
	if len(result.Pools)+len(result.Restarts)+len(result.ManualSteps)+byHand == 0 {
		fmt.Fprintln(o.Console.ErrOut, "note: there is nothing to convert")
	}
	if o.format == "commands" {
		for _, c := range result.ManualSteps {
			fmt.Fprintf(o.Console.Out, "# %s: %s.\n%s\n", c.Object, c.Why, c.Line)
		}
		return byHand, nil
	}
	for _, c := range result.ManualSteps {
		byHand++
		fmt.Fprintf(o.Console.ErrOut, "to do: %s: %s: %s\n", c.Object, c.Why, c.Line)
	}
	return byHand, o.printObjects(result)
}

// printObjects prints the converted objects as manifests.
func (o *options) printObjects(result migrate.Result) error {
	items := make([]any, 0, len(result.Pools)+len(result.Restarts))
	for _, pool := range result.Pools {
		items = append(items, pool)
	}
	for _, restart := range result.Restarts {
		items = append(items, restart)
	}
	if o.format == "json" {
		text, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, "", "    ")
		if err == nil {
			_, err = fmt.Fprintln(o.Console.Out, string(text))
		}
		return err
	}
	for i, item := range items {
		text, err := yaml.Marshal(item)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(o.Console.Out, "---")
		}
		if _, err := o.Console.Out.Write(text); err != nil {
			return err
		}
	}
	return nil
}
