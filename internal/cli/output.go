// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// output is the flag -o of a command that lists objects: for programs what
// kubectl has, for people a table.
type output struct {
	flags *genericclioptions.PrintFlags
	help  string
}

func newOutput(help string) *output {
	return &output{flags: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme), help: help}
}

func (o *output) addTo(cmd *cobra.Command) {
	o.flags.AddFlags(cmd)
	f := cmd.Flags().Lookup("output")
	f.Usage = o.help + ", or what kubectl get has"
	for _, name := range []string{"allow-missing-template-keys", "template", "show-managed-fields"} {
		if f := cmd.Flags().Lookup(name); f != nil {
			f.Hidden = true
		}
	}
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(strings.Split(o.help, "|"), cobra.ShellCompDirectiveNoFileComp))
}

func (o *output) is(format string) bool { return *o.flags.OutputFormat == format }

// printer returns what prints objects, nil for a table. The formats given are
// tables too.
func (o *output) printer(tables ...string) (printers.ResourcePrinter, error) {
	if o.is("") || slices.Contains(tables, *o.flags.OutputFormat) {
		return nil, nil
	}
	p, err := o.flags.ToPrinter()
	if err != nil {
		return nil, fmt.Errorf("-o %s: write one of %s", *o.flags.OutputFormat, strings.ReplaceAll(o.help, "|", ", "))
	}
	return p, nil
}

// print prints a list. Names are printed one by one, as they are no list.
func (o *output) print(printer printers.ResourcePrinter, list runtime.Object, out io.Writer) error {
	if !o.is("name") {
		return printer.PrintObj(list, out)
	}
	return meta.EachListItem(list, func(item runtime.Object) error { return printer.PrintObj(item, out) })
}

// data is the flag -o of a command that shows something that is no object: json
// and yaml, and what else the command has.
type data struct{ format, help string }

func (d *data) addTo(cmd *cobra.Command, more ...string) {
	formats := append([]string{"json", "yaml"}, more...)
	d.help = strings.Join(formats, ", ")
	cmd.Flags().StringVarP(&d.format, "output", "o", "", strings.Join(formats, "|"))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// check refuses a format that there is not, before anything is asked for.
func (d data) check() error {
	if d.format == "" || slices.Contains(strings.Split(d.help, ", "), d.format) {
		return nil
	}
	return fmt.Errorf("-o %s: write one of %s", d.format, d.help)
}

// print prints a value, and tells whether it has: not if a table is wanted.
func (d data) print(out io.Writer, value any) (bool, error) {
	var text []byte
	var err error
	switch d.format {
	case "json":
		text, err = json.MarshalIndent(value, "", "    ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(value)
	default:
		return false, nil
	}
	if err == nil {
		_, err = out.Write(text)
	}
	return true, err
}
