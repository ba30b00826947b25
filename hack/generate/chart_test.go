// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/internal/manager"
)

const chart = "../../charts/tidekeeper/"

// TestChartKnowsTheFlagsItSets checks that all flags in keptByChart and in the chart's templates
// exist.
func TestChartKnowsTheFlagsItSets(t *testing.T) {
	flags := flagsOfManager()
	for name := range keptByChart {
		if flags.Lookup(name) == nil {
			t.Errorf("the chart keeps --%s for itself, which does not exist", name)
		}
	}
	for _, file := range []string{"templates/deployment.yaml", "templates/tests/check.yaml"} {
		text, err := os.ReadFile(chart + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^\s*- --([a-z-]+)`).FindAllStringSubmatch(string(text), -1) {
			if flags.Lookup(match[1]) == nil {
				t.Errorf("%s has --%s, which does not exist", file, match[1])
			}
		}
	}
}

// TestChartKnowsTheDefaultOfTheShutdownTimeout checks that the default in values.yaml equals the
// manager's default. The chart passes the flag only if the value differs.
func TestChartKnowsTheDefaultOfTheShutdownTimeout(t *testing.T) {
	text, err := os.ReadFile(chart + "values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct{ GracefulShutdownSeconds int }
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%ds", values.GracefulShutdownSeconds), flagsOfManager().Lookup("graceful-shutdown-timeout").DefValue; got != want {
		t.Errorf("the value gracefulShutdownSeconds is %s by default, and the flag %s", got, want)
	}
}

func TestChartSchemaMustHaveTheEnum(t *testing.T) {
	text, err := os.ReadFile(chart + "values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	controllers := manager.NewOptions().Definitions()
	if got, err := chartSchema(string(text), controllers, flagsOfManager()); err != nil || got != string(text) {
		t.Errorf("the schema is not as make generate writes it: %v", err)
	}
	if _, err := chartSchema(strings.Replace(string(text), `"controllers"`, `"others"`, 1), controllers, flagsOfManager()); err == nil {
		t.Error("a schema without the enum was accepted")
	}
}
