//! What stands in the blocks of which programs make a message or a result: words and pictures, in the forms of all of them.

use ostler_domain::{event::ImageRecorded, image::Image, session::Report};
use serde_json::Value;

use crate::Heard;

/// The words of blocks, and their pictures. Of what is neither there is its name among the words.
pub(crate) fn parts(content: &Value) -> (String, Vec<Image>) {
    match content {
        Value::String(text) => (text.clone(), Vec::new()),
        Value::Array(blocks) => {
            let (mut words, mut images) = (Vec::new(), Vec::new());
            for block in blocks {
                match (block["text"].as_str(), image(block)) {
                    (Some(text), _) => words.push(text.to_owned()),
                    (None, Some(image)) => images.push(image),
                    (None, None) => {
                        words.push(format!("[{}]", block["type"].as_str().unwrap_or("block")));
                    }
                }
            }
            (words.join("\n"), images)
        }
        Value::Null => (String::new(), Vec::new()),
        other => (other.to_string(), Vec::new()),
    }
}

/// The pictures among blocks.
pub(crate) fn images(content: &Value) -> Vec<Image> {
    content.as_array().into_iter().flatten().filter_map(image).collect()
}

/// A picture whose bytes are in the block. One that is only named, by an address or a path, is not fetched.
fn image(block: &Value) -> Option<Image> {
    let text = |value: &'_ Value, name: &str| value[name].as_str().map(str::to_owned);
    match block["type"].as_str()? {
        "image" if block["source"].is_object() => {
            let source = &block["source"];
            Image::from_base64(source["media_type"].as_str()?, source["data"].as_str()?)
        }
        "image" if block["data"].is_string() => {
            Image::from_base64(block["mimeType"].as_str()?, block["data"].as_str()?)
        }
        "image" | "input_image" | "inputImage" | "image_url" => {
            let url = ["image_url", "imageUrl", "url"]
                .iter()
                .find_map(|name| text(block, name).or_else(|| text(&block[*name], "url")))?;
            Image::from_data_url(&url)
        }
        // ACP has a block within what a tool gave.
        "content" if block["content"].is_object() => image(&block["content"]),
        _ => None,
    }
}

/// Tells of the pictures of a result, before it.
pub(crate) fn shown(
    images: Vec<Image>,
    tool_id: Option<&str>,
    subagent: Option<&String>,
) -> impl Iterator<Item = Heard> {
    let of = move |image| ImageRecorded {
        image,
        tool_id: tool_id.map(str::to_owned),
        message: None,
        subagent: subagent.cloned(),
    };
    images.into_iter().map(of).map(|shown| Heard::Report(Report::Image(shown)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pictures_of_all_programs_are_found_among_the_words() {
        let content = json!([
            {"type": "text", "text": "one"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}},
            {"type": "image", "data": "aGVsbG8=", "mimeType": "image/jpeg"},
            {"type": "input_image", "image_url": "data:image/gif;base64,aGVsbG8="},
            {"type": "content", "content": {"type": "image", "data": "aGVsbG8=", "mimeType": "image/webp"}},
            {"type": "text", "text": "two"},
        ]);
        let (words, images) = parts(&content);
        assert_eq!(words, "one\ntwo");
        let kinds: Vec<&str> = images.iter().map(|image| image.mime.as_str()).collect();
        assert_eq!(kinds, ["image/png", "image/jpeg", "image/gif", "image/webp"]);
        assert!(images.iter().all(|image| image.data() == Some(b"hello")));
    }

    #[test]
    fn what_is_only_named_or_is_no_picture_leaves_its_name() {
        let content = json!([
            {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}},
            {"type": "image", "data": "!", "mimeType": "image/png"},
            {"type": "input_image", "image_url": "https://x.example/a.png"},
            {"type": "document"},
            7,
        ]);
        let (words, images) = parts(&content);
        assert_eq!(
            (words.as_str(), images.len()),
            ("[image]\n[image]\n[input_image]\n[document]\n[block]", 0)
        );
    }
}
