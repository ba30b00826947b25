// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"strings"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// ManualStep is a step that no manifest can express, because it changes a part of an object
// that belongs to another client: applying a part of a Deployment can remove the rest of it.
type ManualStep struct {
	// Object is the name of the original object.
	Object string
	// Why is the reason for the step.
	Why string
	// Line is the shell command.
	Line string
}

// quote quotes a word for a shell, if necessary.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,", r)
	}
	if word != "" && strings.TrimLeftFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// kubectl returns a kubectl command line.
func kubectl(words ...string) string {
	line := "kubectl"
	for _, word := range words {
		line += " " + quote(word)
	}
	return line
}

// inNamespace returns the kubectl arguments for a namespace.
func inNamespace(namespace string) []string {
	if namespace == "" {
		return nil
	}
	return []string{"-n", namespace}
}

// Full names of Tidekeeper's resources: while the original's CRD exists, "eru" may resolve to
// the original's kind.
const (
	restartsResource = "scheduledrestarts." + tidekeeperv1.GroupName
	poolsResource    = "nodepools." + tidekeeperv1.GroupName
)
