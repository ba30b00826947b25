// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/internal/term"
)

// wideFormat is the output format of a table with additional columns.
const wideFormat = "wide"

// ObjectOutput has the flags -o, --no-headers and --sort-by of a command that lists objects. It supports
// kubectl's output formats, and a table.
type ObjectOutput struct {
	flags    *genericclioptions.PrintFlags
	noHeader bool
	sortBy   string
	printer  printers.ResourcePrinter
}

// objectFormats are the formats that the help of -o lists first. kubectl's templates are supported, too.
var objectFormats = []string{"json", "yaml", "name", wideFormat}

// AddTo adds the flags to a command.
func (o *ObjectOutput) AddTo(cmd *cobra.Command) {
	o.flags = genericclioptions.NewPrintFlags("").WithTypeSetter(Scheme)
	o.flags.AddFlags(cmd)
	f := cmd.Flags().Lookup("output")
	f.Usage = strings.Join(objectFormats, "|") + "|custom-columns=…|jsonpath=…|go-template=…, as in kubectl get"
	for _, name := range []string{"allow-missing-template-keys", "template", "show-managed-fields"} {
		if f := cmd.Flags().Lookup(name); f != nil {
			f.Hidden = true
		}
	}
	cmd.Flags().BoolVar(&o.noHeader, "no-headers", false, "do not print the header of the table")
	cmd.Flags().StringVar(&o.sortBy, "sort-by", "", "sort by this field, such as .metadata.creationTimestamp")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(objectFormats, cobra.ShellCompDirectiveNoFileComp))
}

// Format returns the value of -o.
func (o *ObjectOutput) Format() string { return *o.flags.OutputFormat }

// Wide reports whether the table has all columns.
func (o *ObjectOutput) Wide() bool { return o.Format() == wideFormat }

// IsTable reports whether the output is a table.
func (o *ObjectOutput) IsTable() bool { return o.printer == nil }

// NeedsAll reports whether the output can depend on any field of the objects.
func (o *ObjectOutput) NeedsAll() bool { return !o.IsTable() || o.sortBy != "" }

// Validate returns an error for an unknown or malformed output format.
func (o *ObjectOutput) Validate() (err error) {
	switch format := o.Format(); {
	case format == "" || format == wideFormat:
		return nil
	case strings.HasPrefix(format, customColumns):
		o.printer, err = newColumnPrinter(strings.TrimPrefix(format, customColumns), o.noHeader)
	default:
		o.printer, err = o.flags.ToPrinter()
		if genericclioptions.IsNoCompatiblePrinterError(err) {
			return fmt.Errorf("-o %s: write one of %s, custom-columns=…, jsonpath=… or go-template=…", format, strings.Join(objectFormats, ", "))
		}
	}
	if err != nil {
		return fmt.Errorf("-o %s: %w", o.Format(), err)
	}
	return nil
}

// Sort sorts a list by --sort-by.
func (o *ObjectOutput) Sort(list runtime.Object) error {
	if o.sortBy == "" {
		return nil
	}
	if err := sortBy(list, o.sortBy); err != nil {
		return fmt.Errorf("--sort-by %s: %w", o.sortBy, err)
	}
	return nil
}

// Print prints a list in the format of -o. With -o name, it prints each object, as the printer for names does
// not support lists.
func (o *ObjectOutput) Print(list runtime.Object, out io.Writer) error {
	if o.Format() != "name" {
		return o.printer.PrintObj(list, out)
	}
	return meta.EachListItem(list, func(item runtime.Object) error { return o.printer.PrintObj(item, out) })
}

// Table applies the flags to a table.
func (o *ObjectOutput) Table(t *term.Table) *term.Table {
	t.NoHeader = o.noHeader
	return t
}

// DataOutput has the flag -o of a command whose output is not a list of objects. It supports json, yaml, and
// additional formats of the command.
type DataOutput struct {
	Format  string
	formats []string
	shown   []reflect.Type
}

// Shows declares what the command prints as JSON: values of the types of these. Programs depend on
// its fields, and hack/compat compares them with those of earlier releases.
func (o *DataOutput) Shows(values ...any) *DataOutput {
	for _, v := range values {
		o.shown = append(o.shown, reflect.TypeOf(v))
	}
	return o
}

// AddTo adds the flag to a command.
func (o *DataOutput) AddTo(cmd *cobra.Command, more ...string) {
	o.formats = append([]string{"json", "yaml"}, more...)
	cmd.Flags().VarP(FormatFlag{Format: &o.Format, Shown: o.shown}, "output", "o", strings.Join(o.formats, "|"))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.formats, cobra.ShellCompDirectiveNoFileComp))
}

// FormatFlag is the value of a flag -o, with the types that its command prints as JSON.
type FormatFlag struct {
	Format *string
	Shown  []reflect.Type
}

// String implements [pflag.Value].
func (f FormatFlag) String() string { return *f.Format }

// Set implements [pflag.Value].
func (f FormatFlag) Set(format string) error {
	*f.Format = format
	return nil
}

// Type implements [pflag.Value].
func (FormatFlag) Type() string { return "string" }

// Wide reports whether the table has all columns.
func (o *DataOutput) Wide() bool { return o.Format == wideFormat }

// Validate returns an error for an unknown format.
func (o *DataOutput) Validate() error {
	if o.Format == "" || slices.Contains(o.formats, o.Format) {
		return nil
	}
	return fmt.Errorf("-o %s: write one of %s", o.Format, strings.Join(o.formats, ", "))
}

// Print prints a value for programs, and reports whether it did: not if a table
// is asked for. Its type must be declared by Shows.
func (o *DataOutput) Print(out io.Writer, value any) (bool, error) {
	if (o.Format == "json" || o.Format == "yaml") && !slices.Contains(o.shown, reflect.TypeOf(value)) {
		return true, fmt.Errorf("-o %s: the command does not declare that it shows a %T", o.Format, value)
	}
	var text []byte
	var err error
	switch o.Format {
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
