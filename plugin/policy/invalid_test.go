package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
)

func TestInvalidPoliciesAreRefused(t *testing.T) {
	issuer := func(more string) string {
		return header + "environment: prod\nissuers:\n- {name: a, keys: {file: a.json}, " + more + "}\n"
	}
	writer := func(s string) string { return minimal + "trustedWriters:\n- {" + s + "}\n" }
	for _, tt := range []struct{ name, in, want string }{
		// The file.
		{"empty", "", "empty; want a GatePolicy"},
		{"comments only", "# a\n", "empty; want a GatePolicy"},
		{"null", "~\n", "empty; want a GatePolicy"},
		{"no map", "- a\n", "line 1: got a list, want keys and values"},
		{"too large", strings.Repeat("#", maxFile+1), "1048577 bytes, want at most 1048576"},
		{"second document", minimal + "---\na: b\n", "line 7: a second document; a policy is one"},
		{"second empty document", minimal + "---\n", "line 7: a second document; a policy is one"},
		{"broken YAML", minimal + "a: [\n", "line 7: reading YAML: did not find expected node content"},
		{"broken YAML after the document", minimal + "---\na: [\n", "line 8: reading YAML: did not find expected node content"},
		{"unknown key", minimal + "modes: {}\n", `line 7: unknown key "modes", want one of acceptsEnvironments, administrators, apiVersion, apps, categories, environment, environments, gatedDeletes, help, images, issuers, kind, kinds, mode, namespace, protected, receipts, requirements, revocations, scope, sharedControllerIdentity, trustedWriters, unknownImages, variables`},
		{"unknown nested key", issuer("subject: x"), `line 5: issuers[0]: unknown key "subject", want one of algorithms, breakGlass, categories, environments, keys, maxLifetime, name, retired, subjects`},
		{"wrong-case key", issuer("maxlifetime: 4h"), `line 5: issuers[0]: unknown key "maxlifetime"; it is spelt "maxLifetime"`},
		{"duplicate key", minimal + "environment: test\n", "line 7: environment: duplicate key"},
		{"duplicate nested key", issuer("breakGlass: false, breakGlass: true"), "line 5: issuers[0].breakGlass: duplicate key"},
		{"duplicate key of a table", minimal + "images:\n  mirrors: {a.io: b.io, a.io: c.io}\n", "line 8: images.mirrors.a.io: duplicate key"},
		{"number as a key of a table", minimal + "images: {mirrors: {1: b.io}}\n", "line 7: images.mirrors: a key that is not a word"},
		{"list as a table", minimal + "images: {mirrors: []}\n", "line 7: images.mirrors: got a list, want keys and values"},
		{"key that is no word", minimal + "1: a\n", "line 7: a key that is not a word"},
		{"merge key", minimal + "<<: {help: a}\n", "line 7: a key that is not a word"},
		{"anchor", minimal + "help: &x a\n", "line 7: help: anchors and aliases are not used in a policy"},
		{"no value", minimal + "help:\n", "line 7: help: no value"},
		{"empty string", minimal + "help: ''\n", "line 7: help: empty"},
		{"map instead of a list", minimal + "requirements: {}\n", "line 7: requirements: got keys and values, want a list"},
		{"word instead of a map", minimal + "mode: Warn\n", `line 7: mode: got "Warn", want keys and values`},
		{"list instead of a word", minimal + "unknownImages: [Warn]\n", "line 7: unknownImages: got a list, want a word"},
		{"number instead of a string", minimal + "help: 1\n", `line 7: help: got "1", want a string`},
		{"boolean instead of a string", strings.Replace(minimal, "name: a", "name: true", 1), `line 5: issuers[0].name: got "true", want a string`},
		{"YAML 1.1 boolean", issuer("breakGlass: yes"), `line 5: issuers[0].breakGlass: got "yes", want true or false`},
		{"string instead of a number", minimal + "receipts: {keepPrevious: '1'}\n", `line 7: receipts.keepPrevious: got "1", want a whole number`},
		{"octal number", minimal + "receipts: {keepPrevious: 01}\n", `line 7: receipts.keepPrevious: got "01", want a whole number`},
		{"negative number", minimal + "receipts: {keepPrevious: -1}\n", `line 7: receipts.keepPrevious: got "-1", want a whole number`},
		{"all errors, in the order of lines", minimal + "unknownImages: No\nhelp:\n", `line 7: unknownImages: got "No", want Refuse or Warn or Ignore; conf/policy.yaml line 8: help: no value`},

		// Header.
		{"another version", strings.Replace(minimal, "v1alpha1", "v1", 1), `line 1: apiVersion: got "syncgate.io/v1", want "syncgate.io/v1alpha1"`},
		{"no version", strings.Replace(minimal, "apiVersion: syncgate.io/v1alpha1\n", "", 1), `apiVersion: got "", want "syncgate.io/v1alpha1"`},
		{"another kind", strings.Replace(minimal, "GatePolicy", "Policy", 1), `line 2: kind: got "Policy", want "GatePolicy"`},
		{"help of two lines", minimal + "help: \"a\\nb\"\n", `line 7: help: got "a\nb", want one line of at most 300 ASCII characters`},

		// Environments.
		{"no environment", strings.Replace(minimal, "environment: prod\n", "", 1), "environment: missing: which environment does this gate stand for?"},
		{"empty environments", strings.Replace(minimal, "environment: prod\n", "environments: []\n", 1), "environment: missing: which environment does this gate stand for?"},
		{"both", minimal + "environments: [{name: a}]\n", "line 7: environments: given beside environment; want one of the two"},
		{"bad name", strings.Replace(minimal, "environment: prod", "environment: ../x", 1), `line 3: environment: got "../x", want a name of at most 63 letters, digits, '.', '_' or '-'`},
		{"bad accepted name", minimal + "acceptsEnvironments: [a, 'b c']\n", `line 7: acceptsEnvironments[1]: got "b c", want a name of at most 63 letters, digits, '.', '_' or '-'`},
		{"accepted twice", minimal + "acceptsEnvironments: [a, a]\n", `line 7: acceptsEnvironments[1]: "a" is there twice`},
		{"accepts beside environments", strings.Replace(minimal, "environment: prod\n", "environments: [{name: a}]\nacceptsEnvironments: [b]\n", 1), "line 4: acceptsEnvironments: with environments, it belongs to each of them"},
		{"environment twice", strings.Replace(minimal, "environment: prod\n", "environments: [{name: a}, {name: a}]\n", 1), `line 3: environments[1]: "a" is there twice`},
		{"environment without name", strings.Replace(minimal, "environment: prod\n", "environments: [{match: {name: x}}]\n", 1), `line 3: environments[0].name: got "", want a name of at most 63 letters, digits, '.', '_' or '-'`},
		{"environment by project", strings.Replace(minimal, "environment: prod\n", "environments: [{name: a, match: {name: x, project: p}}]\n", 1), "line 3: environments[0].match.project: is not in Argo CD's cache key (name, namespace, path, env), so it cannot select an environment"},
		{"environment by repository", strings.Replace(minimal, "environment: prod\n", "environments: [{name: a, match: {repository: p}}]\n", 1), "line 3: environments[0].match.repository: is not in Argo CD's cache key (name, namespace, path, env), so it cannot select an environment"},
		{"empty match", strings.Replace(minimal, "environment: prod\n", "environments: [{name: a, match: {}}]\n", 1), "line 3: environments[0].match: matches everything; want at least one of name, namespace, path, env"},

		// Issuers.
		{"no issuers", header + "environment: prod\n", "issuers: no issuer but break-glass; want at least one"},
		{"only break-glass", issuer("breakGlass: true"), "line 4: issuers: no issuer but break-glass; want at least one"},
		{"issuer without name", header + "environment: prod\nissuers: [{keys: {file: a.json}}]\n", `line 4: issuers[0].name: got "", want a name of at most 63 letters, digits, '.', '_' or '-'`},
		{"issuer twice", header + "environment: prod\nissuers:\n- {name: a, keys: {file: a.json}, subjects: ['*/*/*/*']}\n- {name: a, keys: {file: b.json}, subjects: ['*/*/*/*']}\n", `line 6: issuers[1]: "a" is there twice`},
		{"no keys", header + "environment: prod\nissuers: [{name: a}]\n", "line 4: issuers[0].keys.file: missing: the public keys of this issuer"},
		{"unknown algorithm", issuer("algorithms: [EdDSA, none]"), `line 5: issuers[0].algorithms[1]: got "none", want one of ES256, ES384, EdDSA, PS256, RS256`},
		{"symmetric algorithm", issuer("algorithms: [EdDSA, HS256]"), `line 5: issuers[0].algorithms[1]: got "HS256", want one of ES256, ES384, EdDSA, PS256, RS256`},
		{"algorithm that fits no key", issuer("algorithms: [ES256]"), `line 5: issuers[0].algorithms: none fits the key "a1"; conf/policy.yaml line 5: issuers[0].algorithms: none fits the key "a2"`},
		{"empty algorithms", issuer("algorithms: []"), "line 5: issuers[0].algorithms: an empty list; leave it out to mean all"},
		{"empty categories", issuer("categories: []"), "line 5: issuers[0].categories: an empty list; leave it out to mean all"},
		{"empty subjects", issuer("subjects: []"), "line 5: issuers[0].subjects: an empty list; leave it out to mean all"},
		{"empty environments of an issuer", issuer("environments: []"), "line 5: issuers[0].environments: an empty list; leave it out to mean all"},
		{"unknown category", issuer("categories: [images]"), `line 5: issuers[0].categories[0]: got "images", want one of admission, command, delivery, identity, image, network, privilege, rbac, secret, service, or x- and a name`},
		{"variables without names", minimal + "variables: [{category: x-a}]\n", "line 7: variables[0].names: missing: which variables"},
		{"variables of a built-in category", minimal + "variables: [{names: [A], category: command}]\n", `line 7: variables[0].category: got "command", want a category of your own, x- and a name`},
		{"a star in the middle of a variable", minimal + "variables: [{names: ['A*B'], category: x-a}]\n", `line 7: variables[0].names[0]: got "A*B", want a name of at most 62 characters, which may begin or end in *`},
		{"variable twice", minimal + "variables: [{names: [A], category: x-a}, {names: [A], category: x-b}]\n", `line 7: variables[1].names[0]: "A" stands twice`},
		{"more variables than can be looked for", minimal + "variables: [{names: [A, B, C, D, E, F, G, H, I], category: x-a}]\n", "line 7: variables: 9 names, want at most 8: a * stands for any text"},
		{"category of no kind", issuer("categories: [x-a]"), `line 5: issuers[0].categories[0]: no entry of kinds or variables has the category "x-a"`},
		{"category twice", issuer("categories: [image, image]"), `line 5: issuers[0].categories[1]: "image" is there twice`},
		{"subject of three parts", issuer("subjects: ['*/*/shop']"), `line 5: issuers[0].subjects[0]: got "*/*/shop", want group/Kind/namespace/name, each with '*' for any run`},
		{"subject with an empty part", issuer("subjects: ['/Pod/a/b']"), `line 5: issuers[0].subjects[0]: got "/Pod/a/b", want group/Kind/namespace/name, each with '*' for any run`},
		{"empty subject", issuer("subjects: ['']"), "line 5: issuers[0].subjects[0]: empty pattern"},
		{"subjects missing", strings.Replace(two, ", subjects: ['*/*/*/*']", "", 1), `line 5: issuers[0].subjects: missing: with a second issuer, say what each may sign, for example "*/*/shop-*/*"`},
		{"unknown environment of an issuer", issuer("environments: [test]"), `line 5: issuers[0].environments[0]: "test" is not an environment of this policy`},
		{"retired key that is not there", issuer("retired: [a3]"), `line 5: issuers[0].retired[0]: key ID "a3" is not in "a.json"; retired keys stay there`},
		{"no lifetime", issuer("maxLifetime: 0s"), "line 5: issuers[0].maxLifetime: 0 lets no receipt count"},
		{"negative lifetime", issuer("maxLifetime: -1h"), `line 5: issuers[0].maxLifetime: got "-1h", want a duration in whole seconds such as 168h`},
		{"lifetime without unit", issuer("maxLifetime: 90"), `line 5: issuers[0].maxLifetime: got "90", want a duration in whole seconds such as 168h`},
		{"lifetime in days", issuer("maxLifetime: 90d"), `line 5: issuers[0].maxLifetime: got "90d", want a duration in whole seconds such as 168h`},
		{"lifetime of half a second", issuer("maxLifetime: 500ms"), `line 5: issuers[0].maxLifetime: got "500ms", want a duration in whole seconds such as 168h`},
		{"key ID under two issuers", strings.Replace(two, "b.json", "id.json", 1), `line 6: issuers[1].keys.file: key ID "a1" is also one of issuer "a"`},
		{"key under two issuers", strings.Replace(two, "b.json", "key.json", 1), `line 6: issuers[1].keys.file: key "x" is the key "a1" of issuer "a"`},
		{"key under two IDs", strings.Replace(minimal, "a.json", "twice.json", 1), `line 6: issuers[0].keys.file: key "y2" is the key "y1" under another ID`},

		// Categories and requirements.
		{"category without name", minimal + "categories: [{since: 2027-01-01}]\n", "line 7: categories[0].name: missing"},
		{"unknown required category", minimal + "categories: [{name: Image}]\n", `line 7: categories[0].name: got "Image", want one of admission, command, delivery, identity, image, network, privilege, rbac, secret, service, or x- and a name`},
		{"custom category of no kind", minimal + "categories: [{name: x-a}]\n", `line 7: categories[0].name: no entry of kinds or variables has the category "x-a"`},
		{"required category twice", minimal + "categories: [{name: image}, {name: image}]\n", `line 7: categories[1]: "image" is there twice`},
		{"bad date", minimal + "categories: [{name: image, since: 15.1.2027}]\n", `line 7: categories[0].since: got "15.1.2027", want a date such as 2027-01-15`},
		{"impossible date", minimal + "categories: [{name: image, since: 2027-02-30}]\n", `line 7: categories[0].since: got "2027-02-30", want a date such as 2027-01-15`},
		{"since of what is not required", minimal + "categories: [{name: image, required: false, since: 2027-01-01}]\n", "line 7: categories[0].since: given beside required: false"},
		{"nothing required", minimal + "categories: [{name: admission, required: false}, {name: command, required: false}, {name: delivery, required: false}, {name: identity, required: false}, {name: image, required: false}, {name: network, required: false}, {name: privilege, required: false}, {name: rbac, required: false}, {name: secret, required: false}]\n", "line 7: categories: none is required: this policy would gate nothing"},
		{"requirement for nothing", two + "requirements: [{issuers: [a]}]\n", "line 7: requirements[0].categories: missing: what this requirement is for"},
		{"requirement of nobody", two + "requirements: [{categories: [rbac]}]\n", "line 7: requirements[0].issuers: missing: who counts"},
		{"requirement of an unknown issuer", two + "requirements: [{categories: [rbac], issuers: [c]}]\n", `line 7: requirements[0].issuers[0]: "c" is not an issuer of this policy`},
		{"requirement with an issuer twice", two + "requirements: [{categories: [rbac], issuers: [a, a], threshold: 2}]\n", `line 7: requirements[0].issuers[1]: "a" is there twice`},
		{"requirement with a category twice", two + "requirements: [{categories: [rbac, rbac], issuers: [a]}]\n", `line 7: requirements[0].categories[1]: "rbac" is there twice`},
		{"requirement with a category of no kind", two + "requirements: [{categories: [x-a], issuers: [a]}]\n", `line 7: requirements[0].categories[0]: no entry of kinds or variables has the category "x-a"`},
		{"requirement of break-glass", strings.Replace(two, "- {name: b,", "- {name: b, breakGlass: true,", 1) + "requirements: [{categories: [rbac], issuers: [a, b]}]\n", `line 7: requirements[0].issuers[1]: "b" is break-glass, which counts for every requirement`},
		{"threshold of none", two + "requirements: [{categories: [rbac], issuers: [a], threshold: 0}]\n", "line 7: requirements[0].threshold: got 0, want at least 1"},
		{"threshold above the issuers", two + "requirements: [{categories: [rbac], issuers: [a, b], threshold: 3}]\n", "line 7: requirements[0].threshold: got 3, but only 2 issuers count"},
		{"requirement that categories forbid", strings.Replace(two, "- {name: a,", "- {name: a, categories: [image],", 1) + "requirements: [{categories: [rbac], issuers: [a]}]\n", `line 7: requirements[0]: 0 of its issuers may sign "rbac" in environment "prod", want at least 1`},
		{"requirement whose issuer has only retired keys", strings.Replace(two, "- {name: a,", "- {name: a, retired: [a1, a2],", 1) + "requirements: [{categories: [rbac], issuers: [a]}]\n", `line 5: issuers[0].retired: every key of "a" is retired, and without it too few may sign the required category "rbac"`},
		{"requirement that environments forbid", strings.Replace(strings.Replace(two, "- {name: a,", "- {name: a, environments: [eu],", 1), "environment: prod", "environments: [{name: eu}, {name: us}]", 1) + "requirements: [{categories: [rbac], issuers: [a, b], threshold: 2}]\n", `line 7: requirements[0]: 1 of its issuers may sign "rbac" in environment "us", want at least 2`},
		{"category that nobody may sign", issuer("categories: [image, command, identity, secret, network, privilege, admission, delivery]"), `line 4: issuers: none may sign the required category "rbac" in environment "prod"`},
		{"category that only break-glass may sign", issuer("categories: [image, command, identity, secret, network, privilege, admission, delivery]") + "- {name: c, breakGlass: true, keys: {file: c.json}}\n", `line 4: issuers: none may sign the required category "rbac" in environment "prod"`},
		{"category of an app that nobody may sign", issuer("categories: [image, command, identity, secret, network, privilege, admission, delivery, rbac]") + "apps: [{match: {name: a}, categories: [{name: service}]}]\n", `line 4: issuers: none may sign the required category "service" in environment "prod"`},

		// Scope, kinds, writers.
		{"include and exclude", minimal + "scope: {admission: {namespaces: {include: [a], exclude: [b]}}}\n", "line 7: scope.admission.namespaces: include and exclude are given; want one of the two"},
		{"empty include", minimal + "scope: {admission: {namespaces: {include: []}}}\n", "line 7: scope.admission.namespaces.include: an empty list: the webhook would judge nothing"},
		{"pattern as a namespace", minimal + "scope: {admission: {namespaces: {exclude: [kube-*]}}}\n", `line 7: scope.admission.namespaces.exclude[0]: got "kube-*", want the exact name of a namespace`},
		{"exclusion at render", minimal + "scope: {render: {}}\n", `line 7: scope: unknown key "render", want one of admission`},
		{"cluster-scoped kind", minimal + "scope: {admission: {clusterScoped: [clusterroles]}}\n", `line 7: scope.admission.clusterScoped[0]: got "clusterroles", want a kind such as ClusterRole or Cluster.example.com`},
		{"pattern as a protected namespace", minimal + "protected: {namespaces: ['*']}\n", `line 7: protected.namespaces[0]: got "*", want the exact name of a namespace`},
		{"kind without group", minimal + "kinds: [{kind: A, path: spec.image, category: x-a}]\n", `line 7: kinds[0].group: got "", want an API group`},
		{"kind in lower case", minimal + "kinds: [{group: a.io, kind: as, path: spec.image, category: x-a}]\n", `line 7: kinds[0].kind: got "as", want a kind such as Prometheus`},
		{"kind with a strange path", minimal + "kinds: [{group: a.io, kind: A, path: .spec.image, category: x-a}]\n", `line 7: kinds[0].path: got ".spec.image", want a path such as spec.image`},
		{"kind in a built-in category", minimal + "kinds: [{group: a.io, kind: A, path: spec.image, category: image}]\n", `line 7: kinds[0].category: got "image", want a category of your own, x- and a name`},
		{"field of a kind twice", minimal + "kinds: [{group: a.io, kind: A, path: spec.image, category: x-a}, {group: a.io, kind: A, path: spec.image, category: x-b}]\n", "line 7: kinds[1]: the same field as kinds[0]"},
		{"writer without user", writer("namespaces: ['*'], categories: [image]"), "line 8: trustedWriters[0].user: missing: the user name that the API server shows"},
		{"pattern as a writer", writer("user: 'system:*', namespaces: ['*'], categories: [image]"), `line 8: trustedWriters[0].user: got "system:*", want the exact name of a user`},
		{"anonymous writer", writer("user: 'system:anonymous', namespaces: ['*'], categories: [image]"), `line 8: trustedWriters[0].user: anybody can be "system:anonymous"`},
		{"half a service account", writer("user: 'system:serviceaccount:a', namespaces: ['*'], categories: [image]"), `line 8: trustedWriters[0].user: got "system:serviceaccount:a", want system:serviceaccount:NAMESPACE:NAME`},
		{"writer without namespaces", writer("user: ops, categories: [image]"), "line 8: trustedWriters[0].namespaces: missing: where this writer is trusted"},
		{"writer without categories", writer("user: ops, namespaces: ['*']"), "line 8: trustedWriters[0].categories: missing: what this writer may write"},
		{"writer with a category of no kind", writer("user: ops, namespaces: ['*'], categories: [x-a]"), `line 8: trustedWriters[0].categories[0]: no entry of kinds or variables has the category "x-a"`},
		{"writer of a strange kind", writer("user: ops, namespaces: ['*'], categories: [image], kinds: [pods]"), `line 8: trustedWriters[0].kinds[0]: got "pods", want a kind such as Pod`},
		{"writer whose namespace is gated", writer("user: 'system:serviceaccount:a:b', namespaces: ['*'], categories: [image]"), `line 8: trustedWriters[0].user: its namespace "a" is gated itself, so its editors can be this user; exclude it or say acceptImpersonation: true`},
		{"writer whose namespace is included", minimal + "scope: {admission: {namespaces: {include: [a]}}}\ntrustedWriters: [{user: 'system:serviceaccount:a:b', namespaces: ['*'], categories: [image]}]\n", `line 8: trustedWriters[0].user: its namespace "a" is gated itself, so its editors can be this user; exclude it or say acceptImpersonation: true`},
		{"exempt writer of everything", writer("user: ops, namespaces: ['*'], categories: [image], exempt: true"), "line 8: trustedWriters[0].exempt: for writers of ReplicaSet and Pod alone; name them in kinds"},
		{"exempt writer of Deployments", writer("user: ops, namespaces: ['*'], categories: [image], kinds: [Pod, Deployment], exempt: true"), "line 8: trustedWriters[0].exempt: for writers of ReplicaSet and Pod alone; name them in kinds"},
		{"exempt writer with images", writer("user: ops, namespaces: ['*'], categories: [image], kinds: [Pod], images: ['a@*'], exempt: true"), "line 8: trustedWriters[0].images: nobody judges the images of an exempt writer"},
		{"deletes of a strange kind", minimal + "gatedDeletes: [networkpolicies]\n", `line 7: gatedDeletes[0]: got "networkpolicies", want a kind such as NetworkPolicy`},
		{"shared identity of anybody", minimal + "sharedControllerIdentity: system:anonymous\n", `line 7: sharedControllerIdentity: anybody can be "system:anonymous"`},

		// Images, receipts, revocations.
		{"unknown mode", minimal + "mode: {render: warn}\n", `line 7: mode.render: got "warn", want Enforce or Warn`},
		{"unknown pin source", minimal + "images: {pins: Lock}\n", `line 7: images.pins: got "Lock", want AlreadyPinned or LockFile or Registry`},
		{"mirror with a scheme", minimal + "images: {mirrors: {docker.io: 'https://a.io'}}\n", `line 7: images.mirrors.docker.io: got "https://a.io", want a registry host, with a path if need be`},
		{"mirror of a path", minimal + "images: {mirrors: {docker.io/library: a.io}}\n", `line 7: images.mirrors.docker.io/library: got "docker.io/library", want a registry host`},
		{"annotation with a space", minimal + "receipts: {annotation: 'a b'}\n", `line 7: receipts.annotation: got "a b", want an annotation key`},
		{"too many previous receipts", minimal + "receipts: {keepPrevious: 9}\n", "line 7: receipts.keepPrevious: got 9, want at most 8"},
		{"unknown treatment of what expired", minimal + "receipts: {expired: Allow}\n", `line 7: receipts.expired: got "Allow", want Refuse or LeaveToAdmission or AllowUnchanged`},
		{"left to no admission", minimal + "receipts: {expired: LeaveToAdmission}\n", "line 7: receipts.expired: LeaveToAdmission needs receipts.backstop: true, or nothing judges what has expired"},
		{"left to no admission by an app", minimal + "apps: [{match: {name: a}, receipts: {expired: LeaveToAdmission}}]\n", "line 7: apps[0].receipts.expired: LeaveToAdmission needs receipts.backstop: true, or nothing judges what has expired"},
		{"revocations without file", two + "revocations: {issuers: [b]}\n", "line 7: revocations.file: missing: the signed list"},
		{"revocations of nobody", two + "revocations: {file: r.jwt}\n", "line 7: revocations.issuers: missing: who may sign the list"},
		{"revocations of an unknown issuer", two + "revocations: {file: r.jwt, issuers: [c]}\n", `line 7: revocations.issuers[0]: "c" is not an issuer of this policy`},

		// Applications.
		{"rule for everything", minimal + "apps: [{mode: {render: Warn}}]\n", "line 7: apps[0].match: matches everything; want at least one of name, namespace, path, env"},
		{"rule about admission", minimal + "apps: [{match: {name: a}, mode: {admission: Warn}}]\n", `line 7: apps[0].mode: unknown key "admission", want one of render`},
		{"rule with a help of two lines", minimal + "apps: [{match: {name: a}, help: \"a\\nb\"}]\n", `line 7: apps[0].help: got "a\nb", want one line of at most 300 ASCII characters`},
		{"rule with a category of no kind", minimal + "apps: [{match: {name: a}, categories: [{name: x-a}]}]\n", `line 7: apps[0].categories[0].name: no entry of kinds or variables has the category "x-a"`},
		{"mode by project", minimal + "apps:\n- match: {project: p}\n  mode:\n    render: Warn\n", "line 10: apps[0].mode.render: relaxes the check, but match.project is not in Argo CD's cache key; match on name, namespace, path or env"},
		{"mode by name and repository", minimal + "apps: [{match: {name: a, repository: r}, mode: {render: Warn}}]\n", "line 7: apps[0].mode.render: relaxes the check, but match.repository is not in Argo CD's cache key; match on name, namespace, path or env"},
		{"category off by project", minimal + "apps: [{match: {project: p}, categories: [{name: image, required: false}]}]\n", "line 7: apps[0].categories[0]: relaxes the check, but match.project is not in Argo CD's cache key; match on name, namespace, path or env"},
		{"category later by project", minimal + "apps: [{match: {project: p}, categories: [{name: image, since: 2027-01-01}]}]\n", "line 7: apps[0].categories[0]: relaxes the check, but match.project is not in Argo CD's cache key; match on name, namespace, path or env"},
		{"unknown images by project", minimal + "apps: [{match: {project: p}, unknownImages: Ignore}]\n", "line 7: apps[0].unknownImages: relaxes the check, but match.project is not in Argo CD's cache key; match on name, namespace, path or env"},
		{"pins by project", minimal + "apps: [{match: {project: p}, images: {pins: Registry}}]\n", "line 7: apps[0].images.pins: relaxes the check, but match.project is not in Argo CD's cache key; match on name, namespace, path or env"},
		{"unpinned images by project", minimal + "apps: [{match: {project: p}, images: {allowUnpinned: [auto]}}]\n", "line 7: apps[0].images.allowUnpinned: relaxes the check, but match.project is not in Argo CD's cache key; match on name, namespace, path or env"},
		{"remaining time by project", minimal + "receipts: {minRemaining: 1h}\napps: [{match: {project: p}, receipts: {minRemaining: 0s}}]\n", "line 8: apps[0].receipts.minRemaining: relaxes the check, but match.project is not in Argo CD's cache key; match on name, namespace, path or env"},
		{"what expired by project", minimal + "apps: [{match: {project: p}, receipts: {expired: AllowUnchanged}}]\n", "line 7: apps[0].receipts.expired: relaxes the check, but match.project is not in Argo CD's cache key; match on name, namespace, path or env"},
	} {
		t.Run(tt.name, func(t *testing.T) { wantInvalid(t, tt.in, gate.PolicyInvalid, tt.want) })
	}
}

func TestUnreadableKeysAreNotAnInvalidPolicy(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"no such file", strings.Replace(minimal, "a.json", "none.json", 1), `line 6: issuers[0].keys.file: reading "none.json": file does not exist`},
		{"outside of the folder", strings.Replace(minimal, "a.json", "../a.json", 1), `line 6: issuers[0].keys.file: reading "../a.json": file does not exist`},
		{"not a key set", strings.Replace(minimal, "a.json", "bad.json", 1), `line 6: issuers[0].keys.file: reading "bad.json": parsing JWK set: no keys`},
		{"no revocation list", two + "revocations: {file: none.jwt, issuers: [b]}\n", `line 7: revocations.file: reading "none.jwt": file does not exist`},
		{"old revocation list", two + "revocations: {file: r.jwt, issuers: [b], minSerial: 8}\n", `line 7: revocations.file: "r.jwt" has serial 7, want at least 8`},
	} {
		t.Run(tt.name, func(t *testing.T) { wantInvalid(t, tt.in, gate.KeysUnavailable, tt.want) })
	}
	for _, tt := range []struct{ name, in string }{
		{"broken revocation list", two + "revocations: {file: r-bad.jwt, issuers: [b]}\n"},
		{"revocation list of another issuer", two + "revocations: {file: r.jwt, issuers: [a]}\n"},
		{"revocation list by a retired key", strings.Replace(two, "- {name: b,", "- {name: b, retired: [b2],", 1) + "revocations: {file: r-retired.jwt, issuers: [b]}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parse(t, tt.in)
			var one *Error
			if !errors.As(err, &one) || one.Reason != gate.KeysUnavailable || !strings.HasPrefix(one.Msg, `verifying "r`) {
				t.Errorf("got %v, want KeysUnavailable: verifying ...", err)
			}
		})
	}
}

func wantInvalid(t *testing.T, text string, reason gate.Reason, want string) {
	t.Helper()
	p, err := parse(t, text)
	if err == nil {
		t.Fatal("got no error")
	}
	if p != nil {
		t.Error("got a policy beside the error")
	}
	sep := ": "
	if strings.HasPrefix(want, "line ") {
		sep = " "
	}
	if got, want := err.Error(), "conf/policy.yaml"+sep+want; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var one *Error
	if !errors.As(err, &one) || one.Reason != reason {
		t.Errorf("got reason of %v, want %s", one, reason)
	}
}

func TestAbsoluteKeyFilesAreTakenAsTheyAre(t *testing.T) {
	if _, err := parse(t, strings.Replace(minimal, "a.json", "/abs/d.json", 1)); err != nil {
		t.Error(err)
	}
}

func TestBreakGlassNeedsNoSubjects(t *testing.T) {
	if _, err := parse(t, minimal+"- {name: c, breakGlass: true, keys: {file: c.json}}\n"); err != nil {
		t.Error(err)
	}
}

// A mistyped --policy may name a private key, and what a refusal says ends in
// the log of a pipeline.
func TestAPolicyThatIsAPrivateKeyIsNotQuoted(t *testing.T) {
	const body = "MC4CAQAwBQYDK2VwBCIEIKv2b0example"
	const pem = "-----BEGIN PRIVATE KEY-----\n" + body + "\n-----END PRIVATE KEY-----\n"
	indented := "  " + strings.ReplaceAll(strings.TrimSpace(pem), "\n", "\n  ") + "\n"
	for _, tt := range []struct{ name, in, want string }{
		{"PEM", pem, "this is a PEM file; want a GatePolicy"},
		{"PEM after empty lines", "\n\n" + pem, "this is a PEM file; want a GatePolicy"},
		{"PEM after a comment", "# key\n" + pem, "line 2: a PEM block; a policy holds no key, it names the file of a key set"},
		{"PEM as a value", minimal + "mode: |\n" + indented, "line 7: a PEM block; a policy holds no key, it names the file of a key set"},
		{"PEM as an item", minimal + "gatedDeletes:\n- |\n" + indented, "line 8: a PEM block; a policy holds no key, it names the file of a key set"},
		{"PEM as a key", minimal + "? |\n" + indented + ": a\n", "line 7: a PEM block; a policy holds no key, it names the file of a key set"},
		{"the body alone", body + "\n", "line 1: got text, want keys and values"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantInvalid(t, tt.in, gate.PolicyInvalid, tt.want)
			if _, err := parse(t, tt.in); err != nil && strings.Contains(err.Error(), body[:4]) {
				t.Errorf("got %v, which shows the key", err)
			}
		})
	}
}

func TestValuesAreQuotedUpToFortyCharacters(t *testing.T) {
	long := strings.Repeat("x", 60)
	for _, in := range []string{"mode: " + long, "unknownImages: " + long, "protected: {namespaces: [" + long + "_]}", long + ": a", "receipts: {grace: " + long + "}"} {
		_, err := parse(t, minimal+in+"\n")
		if err == nil || !strings.Contains(err.Error(), `"`+long[:40]+`"`) {
			t.Errorf("%s: got %v, want 40 characters of the value", in, err)
		}
	}
}
