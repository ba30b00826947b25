// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tidekeeper.dev/tidekeeper/internal/cli"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/manager"
	"tidekeeper.dev/tidekeeper/internal/options"
	"tidekeeper.dev/tidekeeper/internal/restart/query"
)

// collect returns the surface of the source tree in the current folder.
func collect() (surface, error) {
	s := surface{}
	for _, set := range manager.NewOptions().Flags().FlagSets {
		set.VisitAll(func(f *pflag.Flag) { s.addFlag("tidekeeper", f) })
	}
	s.addCommand(cli.Command())
	s.addFields("file --restart-queries ", reflect.TypeFor[query.Config]())
	return s, errors.Join(
		s.addMetrics("docs/reference/metrics.md"),
		s.addConstants("api/v1"),
		s.addExitCodes("kubectl tide", "internal/cli/cmdutil/errors.go"),
		s.addAlerts("config/monitoring/prometheus_rule.yaml"),
		s.addChartValues("charts/tidekeeper/values.yaml"),
	)
}

// addFlag adds a flag and its short form.
func (s surface) addFlag(program string, f *pflag.Flag) {
	flag := thing{Type: f.Value.Type(), Default: strings.Trim(f.DefValue, "[]")}
	if limits := f.Annotations[options.RangeAnnotation]; len(limits) == 2 {
		flag.Min, flag.Max = limits[0], limits[1]
	}
	s["flag "+program+" --"+f.Name] = flag
	if f.Shorthand != "" {
		s["flag "+program+" -"+f.Shorthand] = thing{Default: "--" + f.Name}
	}
}

// addCommand adds a command of the plugin with its flags, the fields of its JSON output, and its
// subcommands.
func (s surface) addCommand(cmd *cobra.Command) {
	name := strings.Replace(cmd.CommandPath(), "kubectl-tide", "kubectl tide", 1)
	s["command "+name] = thing{}
	for _, alias := range cmd.Aliases {
		s["command "+strings.TrimSuffix(name, cmd.Name())+alias] = thing{Default: name}
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		s.addFlag(name, f)
		if format, ok := f.Value.(cmdutil.FormatFlag); ok {
			for _, shown := range format.Shown {
				s.addFields("json "+name+" ", shown)
			}
			for _, accepted := range format.Formats {
				s["output "+name+" -o "+accepted] = thing{}
			}
		}
	})
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			s.addCommand(sub)
		}
	}
}

// metricRow matches a row in the table of metrics that make generate writes.
var metricRow = regexp.MustCompile("(?m)^\\| `(tidekeeper_\\w+)` \\| (\\w+) \\| ([^|]*) \\|")

func (s surface) addMetrics(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	rows := metricRow.FindAllStringSubmatch(string(text), -1)
	if len(rows) == 0 {
		return errors.New(page + " has no metrics")
	}
	for _, row := range rows {
		s["metric "+row[1]] = thing{Type: row[2] + " by " + orNone(strings.ReplaceAll(row[3], "`", ""))}
	}
	return nil
}

// alertName matches the name of an alert, by which users route and silence it.
var alertName = regexp.MustCompile(`(?m)^ *- alert: (\w+)$`)

func (s surface) addAlerts(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	names := alertName.FindAllStringSubmatch(string(text), -1)
	if len(names) == 0 {
		return errors.New(file + " has no alerts")
	}
	for _, name := range names {
		s["alert "+name[1]] = thing{}
	}
	return nil
}
