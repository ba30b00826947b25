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

// wideFormat is the output format that prints a table with additional columns.
const wideFormat = "wide"

// ObjectOutput implements the flags -o, --no-headers and --sort-by of a command that lists objects.
// It supports kubectl's output formats, and prints a table by default.
type ObjectOutput struct {
	flags    *genericclioptions.PrintFlags
	noHeader bool
	sortBy   string
	printer  printers.ResourcePrinter
}

// objectFormats lists the output formats that the help of -o shows first. kubectl's template
// formats, such as jsonpath, are also supported.
var objectFormats = []string{"json", "yaml", "name", wideFormat}

// AddTo adds the output flags to a command.
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

// Format returns the value of -o, or "" for the default table.
func (o *ObjectOutput) Format() string { return *o.flags.OutputFormat }

// Wide reports whether the table has the additional columns of -o wide.
func (o *ObjectOutput) Wide() bool { return o.Format() == wideFormat }

// IsTable reports whether the output is a table.
func (o *ObjectOutput) IsTable() bool { return o.printer == nil }

// NeedsAll reports whether the output may depend on object fields that the table does not show, for
// example because of a JSONPath.
func (o *ObjectOutput) NeedsAll() bool { return !o.IsTable() || o.sortBy != "" }

// Validate rejects unknown and malformed output formats.
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

// Sort sorts a list by the JSONPath in --sort-by.
func (o *ObjectOutput) Sort(list runtime.Object) error {
	if o.sortBy == "" {
		return nil
	}
	if err := sortBy(list, o.sortBy); err != nil {
		return fmt.Errorf("--sort-by %s: %w", o.sortBy, err)
	}
	return nil
}

// Print prints a list in the format of -o. For -o name, it prints each object separately, because
// kubectl's name printer does not support lists.
func (o *ObjectOutput) Print(list runtime.Object, out io.Writer) error {
	if o.Format() != "name" {
		return o.printer.PrintObj(list, out)
	}
	return meta.EachListItem(list, func(item runtime.Object) error { return o.printer.PrintObj(item, out) })
}

// Table returns t, without its header row if --no-headers is set.
func (o *ObjectOutput) Table(t *term.Table) *term.Table {
	t.NoHeader = o.noHeader
	return t
}

// DataOutput implements the flag -o of a command whose output is not a list of API objects. It
// supports json, yaml, and formats that the command adds.
type DataOutput struct {
	Format  string
	formats []string
	shown   []reflect.Type
}

// Shows declares the types that the command prints as JSON, by example values. Users' programs
// depend on the JSON fields, so hack/compat compares the types with earlier releases.
func (o *DataOutput) Shows(values ...any) *DataOutput {
	for _, v := range values {
		o.shown = append(o.shown, reflect.TypeOf(v))
	}
	return o
}

// AddTo adds the flag -o to a command. more lists the formats that the command supports in addition
// to json and yaml.
func (o *DataOutput) AddTo(cmd *cobra.Command, more ...string) {
	o.formats = append([]string{"json", "yaml"}, more...)
	cmd.Flags().VarP(FormatFlag{Format: &o.Format, Formats: o.formats, Shown: o.shown}, "output", "o", strings.Join(o.formats, "|"))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.formats, cobra.ShellCompDirectiveNoFileComp))
}

// FormatFlag is the pflag.Value of the flag -o. It also holds the accepted formats, and the types
// that the command prints as JSON.
type FormatFlag struct {
	Format  *string
	Formats []string
	Shown   []reflect.Type
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

// Wide reports whether the table has the additional columns of -o wide.
func (o *DataOutput) Wide() bool { return o.Format == wideFormat }

// Validate rejects unknown output formats.
func (o *DataOutput) Validate() error {
	if o.Format == "" || slices.Contains(o.formats, o.Format) {
		return nil
	}
	return fmt.Errorf("-o %s: write one of %s", o.Format, strings.Join(o.formats, ", "))
}

// Print prints a value as JSON or YAML. For other formats, it prints nothing and returns false. The
// type of value must have been declared with Shows.
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

// PrintDetails prints the details of some objects. For -o json and -o yaml, it prints a list, or a
// single object without a list, and returns true. Otherwise, it calls `show` for each object,
// separates the objects by an empty line, and returns false.
func PrintDetails[T any](o *DataOutput, out io.Writer, details []T, show func(T) error) (bool, error) {
	var data any = details
	if len(details) == 1 {
		data = details[0]
	}
	if done, err := o.Print(out, data); done {
		return true, err
	}
	for i, detail := range details {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := show(detail); err != nil {
			return false, err
		}
	}
	return false, nil
}
