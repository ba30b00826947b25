// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cmdutil provides the parts that the commands of kubectl tide share.
//
//	env.go                          environment of a command: terminal, cluster connection and clock
//	console.go                      output, notes and error messages
//	kubeconfig.go                   cluster, namespace and contexts from the flags and the
//	                                kubeconfig
//	options.go                      the steps of running a command
//	args.go                         object names as arguments
//	client.go, lists.go             reading from the cluster
//	listing.go                      commands that list objects of our kinds
//	contexts.go, located.go         the flag --contexts, and joint output for several clusters
//	restartlist.go                  reading ScheduledRestarts with only the displayed fields
//	podlist.go                      reading many pods with only the needed fields
//	manager.go                      the current leader, and a note if no manager is running
//	draw.go                         colors for the severities of internal/view
//	errors.go                       exit codes and error messages
//	output.go, columns.go, sort.go  the flags -o, --no-headers and --sort-by
//	follow.go, follow_contexts.go   the flag -w, which prints later changes
//	manifests.go                    reading the manifests of the flag -f
//	duration.go, dryrun.go          flag values for durations, and the flag --dry-run
//	selection.go                    selecting objects to change by names or flags
//	completion.go                   shell completion of object and context names
package cmdutil
