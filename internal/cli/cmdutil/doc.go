// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cmdutil has the parts that the commands of kubectl tide share.
//
//   - env.go: the environment of a run
//   - console.go: output, notes and errors of a run
//   - kubeconfig.go: the cluster, namespace and contexts that flags and kubeconfig name
//   - options.go: the steps of a command
//   - args.go: names of objects as arguments
//   - client.go, pages.go, lists.go: reading from the cluster
//   - listing.go: commands that list objects of a kind
//   - contexts.go, located.go: the flag --contexts, and the answers of several clusters
//   - restartlist.go: ScheduledRestarts, with the fields that the commands show
//   - podlist.go: all pods of the cluster, with the fields that the commands read
//   - manager.go: which manager leads, and a note if none does
//   - draw.go: tables and colors of the values of internal/view
//   - errors.go: exit codes, and messages of errors
//   - output.go, columns.go, sort.go: the flags -o, --no-headers and --sort-by
//   - follow.go, follow_contexts.go: the flag -w
//   - manifests.go: the flag -f
//   - duration.go: durations as flags
//   - completion.go: names that the shell completes
package cmdutil
