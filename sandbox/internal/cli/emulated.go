// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"regexp"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/compatibility"
)

var minorVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)

// checkEmulated refuses, before anything is started, a version that the components would
// refuse.
func checkEmulated(text string) error {
	if text == "" {
		return nil
	}
	if !minorVersion.MatchString(text) {
		return fmt.Errorf("--emulated-version %q: want a version like 1.34", text)
	}
	wanted, err := utilversion.ParseMajorMinor(text)
	if err != nil {
		return fmt.Errorf("--emulated-version %q: %w", text, err)
	}
	effective := compatibility.DefaultBuildEffectiveVersion()
	effective.SetEmulationVersion(wanted)
	if problems := effective.Validate(); len(problems) > 0 {
		return fmt.Errorf("--emulated-version %s: %w", text, problems[0])
	}
	return nil
}
