package redact

import (
	"strings"
	"testing"
)

// bodies are lines of a made-up private key.
const (
	body1 = "MIIEvwSECRETANBgkqhkiG9w0BAQEFAASCBKkwggSlAgEAAoIBAQC7VJTUt9Us8c"
	body2 = "KjMzEfYyjiWA4R4SECRETj7KeSD1y8k2cQ1gk0RJ9Kd3jq7vQmYv2nS0xG9b1Zr4"
	body3 = "q8SECRETm0N3xw=="
)

func pem(sep string) string {
	return "-----BEGIN PRIVATE KEY-----" + sep + body1 + sep + body2 + sep + body3 + sep + "-----END PRIVATE KEY-----" + sep
}

// Each text holds the word SECRET in every secret of it. keeps is what has to
// stay readable.
var inArguments = []struct {
	name, keeps string
	argv        []string
}{
	{"JSON, two keys", `"api_key"`, []string{"x", "--override", `{"api_key": "SECRETX", "token":"ARGSECRET7"}`}},
	{"JSON, nested", "model", []string{"x", "--cfg", `{"a":{"b":[{"token":"SECRET"},{"auth":{"pass":"SECRET2"}}]},"model":"m"}`}},
	{"JSON, list and object under a name", "seed", []string{"x", "--cfg", `{"credentials":{"a":"SECRET","b":["SECRET]"]},"tokens":3,"api_keys":["SECRET","b SECRET"],"seed":0}`}},
	{"JSON in JSON", "port", []string{"x", "--cfg", `{"inner":"{\"api_key\": \"SECRET a\", \"token\": \"SECRET\", \"n\": 1}","port":1}`}},
	{"JSON twice escaped", "port", []string{"x", "--cfg", `"{\"i\":\"{\\\"api_key\\\": \\\"SECRET\\\"}\",\"port\":1}"`}},
	{"JSON over lines", "model", []string{"x", "--cfg", "{\n \"model\": \"m\",\n \"api_key\": \"SECRET\",\n \"secrets\": [\n  \"SECRET\"\n ]\n}"}},
	{"YAML", "model: m", []string{"x", "--cfg", "model: m\ntoken: SECRET\nauth:\n  password: SECRET"}},
	{"YAML, flow", "model: m", []string{"x", "--cfg", "{model: m, token: SECRET, key: SECRET}"}},
	{"YAML, block and list", "port: 1", []string{"x", "--cfg", "api_keys:\n  - SECRET\n  - SECRET\npassword: |\n  SECRET\n  SECRET\nport: 1"}},
	{"joined JSON", "model", []string{"x", `--cfg={"token":"SECRET","model":"m"}`}},
	{"dict", "model", []string{"x", "--cfg", `{'token': 'SECRET', "headers": {'Authorization': 'Bearer SECRET'}, 'model': 'm'}`}},
	{"manifest", "HF_TOKEN", []string{"x", `[{"name": "HF_TOKEN", "value": "SECRET"}, {"name":"PORT","value":"1"}]`}},
	{"query", "https://", []string{"x", "https://u:pSECRET@h/?key=ARGSECRETA"}},
	{"query, several", "stream=1", []string{"x", "--url=https://h/p?stream=1&access_token=SECRET&sig=SECRET#token=SECRET"}},
	{"several values", "--port", []string{"x", "--admin-api-key", "SECRETA", "SECRETB", "SECRETC", "--port", "1"}},
	{"several values of a likely name", "--port", []string{"x", "--token", "SECRETA", "SECRETB", "--port", "1"}},
	{"several values in a title", "--port 1", []string{"vllm serve m --api-key SECRETA SECRETB --port 1"}},
	{"option with a colon", "--token:", []string{"x", "--token:ARGSECRETH"}},
	{"openai -k", "-k", []string{"/usr/bin/openai", "-k", "ARGSECRETC", "api", "models.list"}},
	{"curl -k", "-k", []string{"curl", "-k", "ARGSECRETC"}},
	{"curl -u", "bob:", []string{"curl", "-u", "bob:SECRET", "http://h"}},
	{"curl -u in a script", "bob:", []string{"sh", "-c", "curl -s -u bob:SECRET http://h"}},
	{"redis-cli -a", "ping", []string{"redis-cli", "-a", "SECRET", "ping"}},
	{"sshpass, mysql", "mysql", []string{"sshpass", "-p", "SECRET", "mysql", "-pSECRET"}},
	{"script", "python", []string{"bash", "-c", `export KEY=SECRET; HF_TOKEN=SECRET TOKEN='a SECRET' python -m x --api-key "b SECRET" --token SECRET`}},
	{"password with punctuation", "--password=", []string{"bash", "-c", `x --password=a,SECRET;SECRET)SECRET"SECRET"`}},
	{"property", "-Dx", []string{"java", "-Dx.api.key=SECRET"}},
	{"docker -e", "-e", []string{"docker", "run", "-e", "HF_TOKEN=SECRET", "--env=WANDB_API_KEY=SECRET", "-eNGC_API_KEY=SECRET"}},
	{"header", "X-Api-Key", []string{"x", "--header", "X-Api-Key: SECRET", "--header=api-key: SECRET"}},
	{"database", "postgres://", []string{"x", "postgres://u:SECRET@h/db", "redis://:SECRET@h", "mysql://u:a/SECRET@h/db", "u:SECRET@tcp(h:3306)/db"}},
	{"element", "<port>", []string{"x", "<password>SECRET</password><port>1</port>"}},
	{"key in one argument", "BEGIN", []string{"x", "--ssl", pem("\n")}},
	{"key as a value", "--tls-data", []string{"x", "--tls-data", pem("\n")}},
	{"begins with a dash", "--port", []string{"x", "--api-key", "-aSECRETSECRET0123456789", "--port", "1"}},
	{"settings", "configure", []string{"aws", "configure", "set", "aws_secret_access_key", "SECRET"}},
	{"lone user", "https://", []string{"x", "https://SECRET@sentry.example/1"}},
	{"docker login", "login", []string{"docker", "login", "-u", "u", "-p", "SECRET"}},
	{"index", "https://", []string{"x", "https://h/p?a[token]=SECRET", `os.environ["HF_TOKEN"] = "SECRET"`}},
	{"secret that looks like a path", "--api-key", []string{"x", "--api-key", "/SECRET"}},
}

func TestArgvHides(t *testing.T) {
	for _, tc := range inArguments {
		got := strings.Join(Argv(tc.argv), " ")
		if strings.Contains(got, "SECRET") || !strings.Contains(got, tc.keeps) {
			t.Errorf("%s: %s", tc.name, got)
		}
		if again := strings.Join(Argv(Argv(tc.argv)), " "); again != got {
			t.Errorf("%s: %s\nand once more: %s", tc.name, got, again)
		}
	}
}

var inTexts = []struct{ name, keeps, text string }{
	{"presigned URL", "X-Amz-Date=20261130T000000Z", "403 for https://h/x?X-Amz-Date=20261130T000000Z&token=QUERYSECRET123&X-Amz-Signature=AMZSECRETSIG&X-Amz-Credential=SECRET%2F2026&X-Amz-Security-Token=SECRET%3D failed"},
	{"CloudFront", "model.safetensors", "GET https://cdn/model.safetensors?Expires=1&Policy=SECRET_&Signature=SECRET~-&Key-Pair-Id=SECRET"},
	{"Google", "X-Goog-Date", "https://h/o?X-Goog-Date=1&X-Goog-Signature=SECRET&X-Goog-Credential=SECRET"},
	{"Azure", "se=2026-11-30", "https://h/o?sv=2024&se=2026-11-30&sp=r&sig=SECRET%3D"},
	{"code", "state=1", "/callback?state=1&code=4/SECRET"},
	{"encoded URL", "next", "/login?next=https%3A%2F%2Fh%2F%3Ftoken%3DSECRET%26x%3D1"},
	{"fragment", "h/#", "open https://h/#access_token=SECRET or http://h/#token=SECRET"},
	{"cookies", "Host", "Set-Cookie: session=SECRET; Path=/\nCookie: a=b; c=SECRET\nHost: h"},
	{"cookies as a dict", "port", "cookies={'session': 'SECRET'}, 'cookie': 'a=SECRET', port=1"},
	{"headers in any case", "X-API-KEY", "X-API-KEY: SECRET1\nx-api-key:SECRET\nApi-Key: SECRET\nAUTHORIZATION: BEARER SECRET\nproxy-authorization: Basic SECRET"},
	{"headers as a dict", "User-Agent", `{'Authorization': 'Bearer SECRET', "x-api-key": "SECRET", 'User-Agent': 'x', b'api-key': b'SECRET'}`},
	{"headers as a list", "host", `[(b'host', b'h'), (b'authorization', b'Bearer SECRET'), ("x-api-key", "SECRET"), ['Cookie', 'a=SECRET']]`},
	{"headers as records", "accept", `[{"name": "Authorization", "value": "Bearer SECRET"}, {"name":"accept","value":"*"}]`},
	{"signed request", "", "Authorization: AWS4-HMAC-SHA256 Credential=SECRET/x, SignedHeaders=host, Signature=SECRET"},
	{"digest", "Host", "Authorization: Digest username=SECRET, response=SECRET\nHost: h"},
	{"bare schemes", "sent", "sent Bearer ARGSECRET and Bearer SECRET123 and Basic dTpTRUNSRVQ="},
	{"AWS", "region", "aws_secret_access_key = SECRET/x+y\nregion = r\nAKIASECRETSECRETABCD/wJalrXUtnFEMI/K7MDENG/bPxRfSECRETEXAMKEY"},
	{"issuers", "used", "used AIzaSECRETSECRETSECRETSECRET0123456789 xoxb-SECRET-123 npm_SECRETSECRETSECRET0123456789ABCDEFGH glpat-SECRET12 sk-proj-SECRET12 sk-ant-api03-SECRET nvapi-SECRET12 hf_SECRETabc sk-SECRET12345 github_pat_SECRETSECRET123 https://hooks.slack.com/services/T0/B0/SECRETSECRET"},
	{"behind an escaped newline", "line", `'line\nhf_SECRETabc\tsk-proj-SECRET12\napi_key=SECRET'`},
	{"JWT", "got", "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SECRET and eyJhbGciOiJkaXIifQ..SECRET.SECRET.SECRET"},
	{"JSON", "model", `{"token": "SECRET7x", "auth": "SECRET12", "model": "m"}`},
	{"escaped JSON", "model", `body='{\"api_key\": \"SECRET\", \"model\": \"m\"}'`},
	{"variables", "PORT=1", "HF_TOKEN=SECRET MY_KEY=SECRET PORT=1 export token=SECRET"},
	{"password", "user", "user=u password: SECRET, passwd => 'SECRET', password == SECRET"},
	{"token in a line", "worker", "worker token=SECRET123456 auth: SECRET123456"},
	{"sentences", "invalid", "invalid API key: SECRET; Incorrect API key provided: SECRET"},
	{"repr", "Namespace", "Namespace(token='SECRET1x', api_key=['SECRET'])"},
	{"URL with a password", "postgres://", "postgres://u:SECRET@h redis://:SECRET@h:1/0"},
	{"several values", "--port 1", "args: --api-key SECRETA --admin-api-key SECRETB aSECRETSECRET1234567 --port 1"},
	{"private key", "next", pem("\n") + "next"},
	{"private key in one line", "next", `key="` + pem(`\n`) + `" next`},
	{"private key, CRLF", "next", pem("\r\n") + "next"},
	{"private key without its beginning", "next", body1[30:] + "\n" + body2 + "\n" + body3 + "\n-----END PRIVATE KEY-----\nnext"},
	{"private key without its end", "BEGIN", "-----BEGIN RSA PRIVATE KEY-----\n" + body1 + "\n" + body2},
	{"private key without both", "first", "first\n" + body1 + "\n" + body2 + "\n" + body2},
	{"private key below a long word", "", strings.Repeat("loadingKEY", 7) + "\n" + body1 + "\n" + body2 + "\n"},
	{"OpenPGP", "next", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nSECRET\n-----END PGP PRIVATE KEY BLOCK-----\nnext"},
}

func TestStringHides(t *testing.T) {
	for _, tc := range inTexts {
		got := String(tc.text)
		if strings.Contains(got, "SECRET") || strings.Contains(got, "dTpTRUNSRVQ") || !strings.Contains(got, tc.keeps) {
			t.Errorf("%s: %s", tc.name, got)
		}
		if again := String(got); again != got {
			t.Errorf("%s: %s\nand once more: %s", tc.name, got, again)
		}
	}
}
