package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/policy"
)

const webhookPage = "../../../docs/webhook.md"

// matches lists what the first group of a pattern finds, sorted, each once.
func matches(pattern, text string) []string {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// TestWebhookDocNamesWhatTheCodeHas: names that people put into alerts, queries
// and command lines.
func TestWebhookDocNamesWhatTheCodeHas(t *testing.T) {
	doc := read(t, webhookPage)
	source := sources(t, "../../../plugin/webhook")
	program := read(t, "../../../cmd/syncgate-webhook/main.go")
	_, audit, _ := strings.Cut(doc, "| annotation, after `ENTRY.syncgate.io/`")
	audit, _, _ = strings.Cut(audit, "\n\n")
	_, how, _ := strings.Cut(doc, "`how` is one of ")
	how, _, _ = strings.Cut(how, ".")
	_, flags, _ := strings.Cut(doc, "`syncgate-webhook --help` lists the flags: ")
	flags, _, _ = strings.Cut(flags, ".")
	for name, tt := range map[string]struct {
		code, doc []string
		least     int
	}{
		"metrics":           {matches(`Name: "(syncgate_[a-z_]+)"`, source), matches("(?m)^\\| `(syncgate_[a-z_]+)`", doc), 8},
		"audit annotations": {matches(`(?:out\["|map\[string\]string\{")([a-z-]+)"`, source), matches("`([a-z-]+)`", strings.ReplaceAll(audit, "`true`", "")), 8},
		"ways to answer":    {matches(`(?m)^\s+[A-Za-z]+\s+How = "([a-z]+)"`, source), matches("`([a-z]+)`", how), 10},
		"paths":             {matches(`"GET (/[a-z]+)"`, source), matches("(?m)^\\| `(/[a-z]+)`", doc), 4},
		"flags":             {matches(`Var\([^,]+, "([a-z-]+)"`, program), matches("`--([a-z-]+)`", flags), 9},
	} {
		t.Run(name, func(t *testing.T) {
			if len(tt.code) < tt.least {
				t.Fatalf("got %q, want at least %d: has the code another form now?", tt.code, tt.least)
			}
			if diff := cmp.Diff(tt.code, tt.doc); diff != "" {
				t.Errorf("docs/webhook.md (-code +doc):\n%s", diff)
			}
		})
	}
}

// TestWritersInDocAreThoseOfTheWebhook compares the closed table in the docs
// with who is really exempt, in both directions.
func TestWritersInDocAreThoseOfTheWebhook(t *testing.T) {
	groups := map[string]string{
		"ReplicaSet": "apps", "Deployment": "apps", "StatefulSet": "apps", "DaemonSet": "apps", "ControllerRevision": "apps",
		"Pod": "", "PersistentVolumeClaim": "", "PersistentVolume": "", "ServiceAccount": "", "Endpoints": "", "Service": "", "Secret": "", "Namespace": "",
		"Job": "batch", "CronJob": "batch", "EndpointSlice": "discovery.k8s.io", "ClusterRole": "rbac.authorization.k8s.io",
		"RoleBinding": "rbac.authorization.k8s.io", "ClusterRoleBinding": "rbac.authorization.k8s.io", "ResourceClaim": "resource.k8s.io",
	}
	_, table, _ := strings.Cut(read(t, webhookPage), "| user (`system:serviceaccount:kube-system:` ...) | may | of |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	documented := map[string]bool{}
	var users []string
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 {
			t.Fatalf("row %q", line)
		}
		user := strings.Trim(strings.TrimSpace(cells[0]), "`")
		users = append(users, user)
		for _, op := range strings.Split(cells[1], ",") {
			for _, kind := range strings.Split(cells[2], ",") {
				kind = strings.TrimSpace(kind)
				if _, known := groups[kind]; !known {
					t.Fatalf("kind %q is unknown here", kind)
				}
				documented[user+" "+strings.TrimSpace(op)+" "+kind] = true
			}
		}
	}
	if len(documented) < 20 {
		t.Fatalf("got %d grants", len(documented))
	}
	// Users that the code knows: as the source of the table names them.
	known := matches(`\{"([a-z-]+)", \[\]string\{`, read(t, "../../../plugin/admission/writers.go"))
	slices.Sort(users)
	if diff := cmp.Diff(known, slices.Compact(users)); diff != "" {
		t.Errorf("controllers (-code +doc):\n%s", diff)
	}
	for _, user := range known {
		for kind, group := range groups {
			for _, op := range []string{admission.Create, admission.Update} {
				got := admission.Exempt(policy.Admission{Namespace: "syncgate-system"}, admission.Writer{
					User: "system:serviceaccount:kube-system:" + user, Operation: op, Kind: admission.GroupKind{Group: group, Kind: kind}, Namespace: "shop", Name: "x",
				})
				if want := documented[user+" "+op+" "+kind]; got != want {
					t.Errorf("%s %s %s: exempt %v, docs say %v", user, op, kind, got, want)
				}
			}
		}
	}
}

// TestEntriesOfTheShippedConfigurationAreInTheDoc: the table is generated; this
// is that its numbers are those of the configuration.
func TestEntriesOfTheShippedConfigurationAreInTheDoc(t *testing.T) {
	var c admission.Configuration
	if err := yaml.UnmarshalStrict([]byte(read(t, "../../../manifests/webhook/configuration.yaml")), &c); err != nil {
		t.Fatal(err)
	}
	doc := read(t, webhookPage)
	for _, w := range c.Webhooks {
		if !strings.Contains(doc, "\n| `"+w.Name+"` | ") {
			t.Errorf("docs/webhook.md has no row for %s", w.Name)
		}
		for _, r := range w.Rules {
			if slices.Contains(r.Resources, "*") || slices.Contains(r.APIGroups, "*") {
				t.Errorf("%s asks about everything: %v", w.Name, r)
			}
		}
	}
}

// TestWebhookDocCommandsAreOnes runs the parser over each syncgate command in
// the page: flags that were renamed.
func TestWebhookDocCommandsAreOnes(t *testing.T) {
	doc := read(t, webhookPage) + read(t, "../../../manifests/policies/README.md") + read(t, "../../../manifests/webhook/README.md")
	count := 0
	for _, line := range regexp.MustCompile("(?m)^ *(syncgate .*)$").FindAllStringSubmatch(doc, -1) {
		command, _, _ := strings.Cut(line[1], " | ")
		command, _, _ = strings.Cut(command, " > ")
		args := strings.Fields(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(command, "x"))[1:]
		c, rest, err := root().Find(args)
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
		count++
	}
	if count < 8 {
		t.Errorf("got %d commands", count)
	}
	for _, m := range regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`).FindAllStringSubmatch(read(t, webhookPage), -1) {
		if _, err := os.Stat(filepath.Join("../../../docs", m[1])); err != nil {
			t.Errorf("link: %v", err)
		}
	}
}
