// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Selection implements the flags of commands that change several objects: -l and --all select
// objects instead of names, and --dry-run changes nothing.
type Selection struct {
	LabelSelector string
	All           bool
	DryRun        DryRun

	Selector labels.Selector
}

// AddTo adds the flags to a command. labeled and all are the help texts of -l and --all.
func (s *Selection) AddTo(cmd *cobra.Command, labeled, all string) {
	cmd.Flags().StringVarP(&s.LabelSelector, "selector", "l", "", labeled)
	cmd.Flags().BoolVar(&s.All, "all", false, all)
	s.DryRun.AddTo(cmd)
}

// Complete parses the label selector.
func (s *Selection) Complete() (err error) {
	if s.Selector, err = labels.Parse(s.LabelSelector); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	return nil
}

// Validate returns an error unless objects are selected in exactly one way: by name, by -l or by
// --all. It also validates --dry-run. names is the number of names on the command line. The
// parameter named is the first part of the error message, which explains how to select objects by
// name.
func (s *Selection) Validate(names int, named string) error {
	ways := min(names, 1)
	for _, given := range []bool{s.LabelSelector != "", s.All} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return fmt.Errorf("%s, or select them by -l or by --all: one of the three", named)
	}
	return s.DryRun.Validate()
}

// Pick returns the objects with the given names, in the order of the names. If an object does not
// exist, `missing` is its name, and Pick returns no objects.
func Pick[T any, P interface {
	*T
	metav1.Object
}](all []T, names []string) (picked []T, missing string) {
	byName := make(map[string]int, len(all))
	for i := range all {
		byName[P(&all[i]).GetName()] = i
	}
	for _, name := range names {
		i, exists := byName[name]
		if !exists {
			return nil, name
		}
		picked = append(picked, all[i])
	}
	return picked, ""
}
