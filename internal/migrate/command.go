// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"strings"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// ManualStep is a step that the user must perform with a command. No manifest can express it,
// because it changes only a part of an object that another client manages. For example, applying a
// part of a Deployment can remove the rest.
type ManualStep struct {
	// Object describes the original objects that need the step.
	Object string
	// Why states why the step is necessary.
	Why string
	// Line is the shell command to run.
	Line string
}

// quote quotes a word for a POSIX shell if necessary.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,", r)
	}
	if word != "" && strings.TrimLeftFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// kubectl returns a kubectl command line with quoted arguments.
func kubectl(words ...string) string {
	line := "kubectl"
	for _, word := range words {
		line += " " + quote(word)
	}
	return line
}

// inNamespace returns the kubectl flags that select a namespace.
func inNamespace(namespace string) []string {
	if namespace == "" {
		return nil
	}
	return []string{"-n", namespace}
}

// Full resource names of Tidekeeper's kinds. A short name such as "eru" may resolve to the original
// operator's kind while its CRD exists.
const (
	restartsResource = "scheduledrestarts." + tidekeeperv1.GroupName
	poolsResource    = "nodepools." + tidekeeperv1.GroupName
)
