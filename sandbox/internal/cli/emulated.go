// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/pflag"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/compatibility"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
)

var minorVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)

// chooseRelease sets the flag --kubernetes to the environment variable SANDBOX_KUBERNETES unless
// the user has set the flag. A sandbox that is already running must then have this release, too. It
// returns an error if the emulated version is invalid.
func chooseRelease(flags *pflag.FlagSet, o *cluster.Options) error {
	if release := os.Getenv("SANDBOX_KUBERNETES"); release != "" && !flags.Changed("kubernetes") {
		if err := flags.Set("kubernetes", release); err != nil {
			return err
		}
	}
	if o.Kubernetes != "" {
		return nil // cluster.Options.Check rejects the combination of another release and an emulated version.
	}
	return checkEmulated(o.EmulatedVersion)
}

// checkEmulated rejects an emulated version that the components would reject, before anything is
// started.
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
