//! A server on the loopback that renews logins: each token that renews is worth one renewal, as it is with the real ones.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

/// It ends with the test.
pub struct FakeOauth {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    /// The one token that renews.
    valid: Mutex<String>,
    /// What was asked, and whether it was granted.
    asked: Mutex<Vec<(Value, bool)>>,
    /// When what it hands out ends, in seconds since 1970.
    expires: i64,
    over: AtomicBool,
}

impl FakeOauth {
    /// `valid` renews once; what it hands out then ends at `expires`.
    pub fn start(valid: &str, expires: i64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            valid: Mutex::new(valid.to_owned()),
            asked: Mutex::default(),
            expires,
            over: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), false) = (stream, shared.over.load(Ordering::SeqCst)) else { return };
                let _ = serve(&stream, &shared);
            }
        });
        Self { address, state }
    }

    pub fn url(&self) -> String {
        format!("http://{}/oauth/token", self.address)
    }

    /// Every renewal that was asked for, and whether it was granted.
    pub fn asked(&self) -> Vec<(Value, bool)> {
        self.state.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The one token that renews now.
    pub fn valid(&self) -> String {
        self.state.valid.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for FakeOauth {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then ends.
        let _ = TcpStream::connect(self.address);
    }
}

/// One request a connection.
fn serve(mut stream: &TcpStream, state: &State) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap_or(0);
            }
            _ if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut valid = state.valid.lock().unwrap_or_else(PoisonError::into_inner);
    let granted = asked["refresh_token"] == valid.as_str();
    let (status, answer) = match granted {
        true => {
            *valid = format!("{}+", *valid);
            let token = token(state.expires, &valid);
            (200, json!({"id_token": token, "access_token": token, "refresh_token": *valid}))
        }
        false => (401, json!({"error": {"code": "refresh_token_reused", "message": "it was used already"}})),
    };
    drop(valid);
    state.asked.lock().unwrap_or_else(PoisonError::into_inner).push((asked, granted));
    let answer = answer.to_string();
    let head = format!(
        "HTTP/1.1 {status} Fake\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        answer.len()
    );
    stream.write_all((head + &answer).as_bytes())
}

/// A token of three parts, as OpenAI's are, that says when it ends and who it is.
pub fn token(expires: i64, id: &str) -> String {
    let account = json!({"chatgpt_plan_type": "plus", "chatgpt_user_id": "u", "chatgpt_account_id": "acc"});
    let claims = json!({"exp": expires, "jti": id, "email": "ann@example.org", "https://api.openai.com/auth": account});
    [json!({"alg": "none"}), claims].map(|part| base64url(part.to_string().as_bytes())).join(".") + ".c2ln"
}

fn base64url(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for sign in 0..=group.len() {
            text.push(char::from(SIGNS[(bits >> (18 - 6 * sign) & 63) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_become_text() {
        for (bytes, text) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg")] {
            assert_eq!(super::base64url(bytes.as_bytes()), text);
        }
    }
}
